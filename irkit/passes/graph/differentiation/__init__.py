"""Differentiation of functions at the graph level: forward and reverse mode, loops among them.

`differentiated` is the way in. The rules of ops are `irkit.dialects.graph.gradients`; here programs are
walked.
"""

from irkit.passes.graph.differentiation.function import Differentiation, differentiated

__all__ = ["Differentiation", "differentiated"]
