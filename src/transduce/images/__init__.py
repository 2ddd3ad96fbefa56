"""Find images, list them in a manifest, and decode them in worker processes."""
