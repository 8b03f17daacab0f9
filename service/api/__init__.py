"""The HTTP interface: routes, problems, limits; it plans and enqueues, and never reads rows."""
