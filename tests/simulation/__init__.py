"""The whole broker in a world of its own: time, network and disk are simulated, and a seed decides everything."""
