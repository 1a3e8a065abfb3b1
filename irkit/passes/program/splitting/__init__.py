"""Which part of each value a part of a result needs, and functions that compute a part."""
