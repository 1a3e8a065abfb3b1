"""Functions of NumPy arrays, traced into the program level through NumPy's own protocols."""
