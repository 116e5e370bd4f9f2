"""Real clients, a real process, and SIGKILL in the middle of it."""
