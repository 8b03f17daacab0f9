"""Jobs of every kind, clusterings and questions alike: plan, run, record and replay."""
