"""The protocol of groups as a client speaks it."""
