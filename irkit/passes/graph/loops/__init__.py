"""Functions with loops, as calls of functions without."""
