"""`report.html`: the page of a labeling run."""
