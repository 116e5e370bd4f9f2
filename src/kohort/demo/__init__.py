"""The demo: three hours of a small shop, told by a real broker and real clients in a quarter of a minute."""
