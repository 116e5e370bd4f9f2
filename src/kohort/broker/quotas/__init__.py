"""Quotas: how much users and clients may send, fetch and have computed a second, and how long they wait beyond that."""
