"""Where all clients commit."""

TOPIC = "orders"
COPIES = "copies"
"""Where transactions produce to."""
PARTITIONS = 4
