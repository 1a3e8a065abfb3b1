"""Frames and series of pandas in traced functions: columns of numbers are arrays of the trace, and what is
done to them is compiled; all else is called by the host, in order, a task each."""
