"""The parts of HTTP that every route shares: limits, problems, pages, wire types."""
