"""The `program` dialect: what a program of arrays needs that upstream has no op for."""

from xdsl.ir import Dialect

from irkit.dialects.program.call import CallOp

Program = Dialect("program", [CallOp], [])

__all__ = ["CallOp", "Program"]
