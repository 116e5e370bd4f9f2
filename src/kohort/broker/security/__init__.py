"""Who may come in and what they may do: logins, permissions, and where both are kept."""
