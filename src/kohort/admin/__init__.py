"""Groups of a running cluster, looked at and changed through the protocol that every Kafka speaks."""
