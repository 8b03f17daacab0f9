"""What an analyst or a curator installs: a Python client of the service and the `cairn` command."""
