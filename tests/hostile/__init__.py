"""Hostile peers against a real broker, while a group of real consumers goes about its business.

python -m tests.hostile        the whole of it, with figures (`make hostile`)
"""
