"""A broker that is kept busy for long, and whether anything grows that should not."""
