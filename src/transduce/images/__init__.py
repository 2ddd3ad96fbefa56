"""Images in: find them, list them in a manifest, decode them safely in worker processes."""
