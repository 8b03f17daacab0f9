"""The curator's service: HTTP API, ledger, queue, workers and console around `core`."""
