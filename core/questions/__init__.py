"""Questions about a dataset other than clusterings: profiles, tables, quantiles and summaries."""
