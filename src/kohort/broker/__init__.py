"""The asyncio shell: connections, one module for each API, topics, and what holds them together."""
