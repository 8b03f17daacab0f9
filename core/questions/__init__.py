"""Questions about a dataset beside clustering: profiles, tables, quantiles and summaries."""
