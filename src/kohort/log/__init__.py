"""Durable partitions: files, segments, recovery, cleaner, retention."""
