"""The commands of `cairn`, one module per topic; `cairn_client.cli` puts them together."""
