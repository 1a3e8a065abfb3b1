"""Which rOperators of a module compute the same: a launch may be run by any of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp

from irkit.dialects.task import ROperatorOp
from irkit.passes.task.proof import OpDigest


def meanings(module: ModuleOp) -> dict[str, str]:
    """Symbol of each rOperator -> the first symbol in the module whose body is the same, op by op.

    Copies of one rOperator that were chosen different rKernels and grids for are the same in this sense.
    """
    return meanings_of(digests(module))


def meanings_of(found: Mapping[str, str]) -> dict[str, str]:
    """The same of rOperators by their digests."""
    first: dict[str, str] = {}
    return {symbol: first.setdefault(digest, symbol) for symbol, digest in found.items()}


def digests(module: ModuleOp) -> dict[str, str]:
    """Symbol of each rOperator -> a digest of its body."""
    return {op.sym_name.data: _body(op) for op in module.ops if isinstance(op, ROperatorOp)}


def _body(op: ROperatorOp) -> str:
    found = OpDigest()
    found.add_regions(op)
    return hashlib.sha256(f"{op.function_type} {found.hex()}".encode()).hexdigest()
