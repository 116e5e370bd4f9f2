"""Transactions: Kafka 2.6's transaction coordinator, with no sockets, no files and no event loop in it."""
