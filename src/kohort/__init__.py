"""Kafka's consumer-group coordinator in Python, and the pipeline that reads its log."""
