"""From a folder of images and class names to labels that can be trusted, in a run directory."""
