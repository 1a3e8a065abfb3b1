"""Random programs of arrays: views, overlapping slices, effects in loops; held against NumPy."""
