"""What people look at: the page of a run, the report of a suite, the illustrations."""
