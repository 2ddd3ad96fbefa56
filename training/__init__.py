"""Training of the shapes encoder that comes with the library: `python -m training.train`."""
