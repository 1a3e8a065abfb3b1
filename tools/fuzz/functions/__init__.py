"""Random functions of NumPy arrays, as `irkit.jit` takes them, against NumPy."""
