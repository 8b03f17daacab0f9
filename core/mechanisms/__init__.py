"""All mechanisms by which statistics are released."""
