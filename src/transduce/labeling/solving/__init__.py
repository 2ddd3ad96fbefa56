"""A batch of any size to its labels: in memory, from the feature store, or on a cluster."""
