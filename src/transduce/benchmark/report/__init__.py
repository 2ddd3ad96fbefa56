"""Reports: the same numbers for the terminal, as Markdown, LaTeX, CSV and one HTML page."""
