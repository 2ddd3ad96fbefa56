"""How the embedded encoder was made: `python -m training.train`."""
