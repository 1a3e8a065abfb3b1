"""The standard pipeline, pipelines as text, and the one runner of passes."""
