"""Which rOperators of a module compute the same: a launch may be run by any of them."""

from __future__ import annotations

import hashlib

from xdsl.dialects.builtin import ModuleOp

from irkit.dialects.task import ROperatorOp
from irkit.passes.task.proof import OpDigest


def meanings(module: ModuleOp) -> dict[str, str]:
    """Symbol of each rOperator -> the first symbol in the module whose body is the same, op by op.

    Copies of one rOperator that were chosen different rKernels and grids for are the same in this sense.
    """
    first: dict[str, str] = {}
    return {
        op.sym_name.data: first.setdefault(_body(op), op.sym_name.data)
        for op in module.ops
        if isinstance(op, ROperatorOp)
    }


def _body(op: ROperatorOp) -> str:
    found = OpDigest()
    found.add_regions(op)
    return hashlib.sha256(f"{op.function_type} {found.hex()}".encode()).hexdigest()
