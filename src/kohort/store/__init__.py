"""Partitions in a PostgreSQL database, of which this machine has a copy to read from."""
