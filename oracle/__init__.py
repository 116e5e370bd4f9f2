"""The oracle: one and the same conversation with Apache Kafka and with kohort, compared field by field."""
