"""The page of a run: one file that opens anywhere, without a network."""
