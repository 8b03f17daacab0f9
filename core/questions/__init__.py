"""Questions: jobs other than clusterings, about a dataset or about the clusters of earlier jobs."""
