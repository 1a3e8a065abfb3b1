"""Programs of whole kernels on a host and its GPU: the same plain data as a schedule, at a coarser
grain."""
