"""`irkit.compile`: from a model to a program that runs, by way of the disk cache."""
