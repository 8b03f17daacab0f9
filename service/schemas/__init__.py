"""Wire types of the HTTP interface: strict, documented, each with an example that OpenAPI shows."""
