"""A real PostgreSQL and real service processes, for benchmarks and tests."""
