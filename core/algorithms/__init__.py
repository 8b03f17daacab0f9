"""The clustering algorithms and the registry of their names."""
