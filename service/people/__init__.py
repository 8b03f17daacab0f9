"""People: principals, their keys and roles, and the caller of a request."""
