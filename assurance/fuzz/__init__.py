"""Hostile input, wrong people, curious watchers: the short set for `make test`, the long for `make fuzz`."""
