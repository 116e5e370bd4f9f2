"""Everything that takes too long for `make test`, in one go."""
