"""Workers: processes that claim jobs, read rows and run plans on them."""
