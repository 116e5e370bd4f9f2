"""What stands on disk: bytes in, values out. No I/O, no event loop, no Spark."""
