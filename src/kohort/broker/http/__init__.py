"""The port for people and their tools: metrics, health, groups, and a page that shows them live.

Nothing here is imported unless that port is asked for: the broker starts faster without.
"""
