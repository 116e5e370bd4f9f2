"""Bytes that nobody would write, millions of them, for everything that reads bytes which came from elsewhere."""
