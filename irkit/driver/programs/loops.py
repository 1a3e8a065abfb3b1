"""The loops that `irkit` has for functions that `irkit.jit` compiles."""

from irkit.frontends.numpy.control import loop_range, while_loop

__all__ = ["loop_range", "while_loop"]
