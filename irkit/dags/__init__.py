"""DAGs of kernels: launches in program order, scheduled by what they read and write.

Nothing is declared. `irkit.dag()` records launches of Numba and CuPy kernels, programs of irkit's and
host functions; `inference` says what they read and write, `steps` adds the copies of host arrays,
`irkit.schedule.host` finds streams and events and proves them, `plans` and `eager` run them, on a GPU
or on a mock of one.
"""
