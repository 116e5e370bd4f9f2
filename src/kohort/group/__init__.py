"""Consumer groups: Kafka 2.6's coordinator, with no sockets, no files and no event loop in it."""
