"""What of the documentation is generated: `python -m docs` writes it, `python -m docs --check` says what is stale."""
