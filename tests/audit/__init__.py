"""The dependencies: are they those that were decided on, do they fit together, is anything known against them."""
