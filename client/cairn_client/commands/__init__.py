"""The commands of `cairn`, one module per kind of thing; `cairn_client.cli` puts them together."""
