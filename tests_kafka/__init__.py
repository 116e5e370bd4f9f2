"""Tests beside Apache Kafka itself: they need Java and Maven, and run by `make test-kafka`."""
