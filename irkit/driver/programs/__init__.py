"""`irkit.jit`: functions of NumPy arrays, traced, compiled and run."""
