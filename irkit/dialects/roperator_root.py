"""The root of an rOperator, and how its dimensions are laid out.

The root is the one op that needs a kernel of its own (a contraction or chain of contractions that
accumulate into each other, a reduction, a softmax, a forest walk, …). All else in a body is light:
each of its elements is an expression of other elements, and is fused as prologue or epilogue. A body
without a heavy op is a `map`. `roperator_body.py` finds it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue

from irkit.dialects.linalg_generic import loop_of, maps


@dataclass(frozen=True)
class Root:
    """The root of a body.

    `parallel` and `reduction` are loop extents (the batch is DYNAMIC). For a chain of contractions
    that accumulate into one another, `chain` lists them in order; `op` is the last. `body` is the whole body,
    with what is fused before and behind the root.
    """

    family: str
    op: Operation | None
    parallel: tuple[int, ...]
    reduction: tuple[int, ...] = ()
    chain: tuple[linalg.GenericOp, ...] = field(default=())
    body: Block | None = field(default=None, compare=False, repr=False)
    counted: dict[str, Any] = field(
        default_factory=dict[str, Any], init=False, compare=False, repr=False
    )
    """What was counted of the body so far: many grids are tried of a root, of which it is the same."""

    @property
    def value(self) -> SSAValue | None:
        """What the root defines; None for a map."""
        return self.op.results[0] if self.op is not None else None


def gemm_inputs(root: Root) -> tuple[int, int] | None:
    """(number of A, number of B) of a contraction where A has no columns and B no rows."""
    op = root.chain[-1]
    used = [{loop_of(e) for e in m.results} for m in maps(op)[:2]]
    last, lead = len(root.parallel) - 1, set(range(len(root.parallel) - 1))
    for a, b in ((0, 1), (1, 0)):
        if last not in used[a] and not used[b] & lead:
            return a, b
    return None


def gemm_layout(root: Root) -> str:
    """How B lies in memory: "kj" (columns run fastest) or "jk"; "" if it is no plain gemm."""
    if root.family != "gemm" or len(root.chain) != 1:
        return ""
    found = gemm_inputs(root)
    if found is None:
        return ""
    fastest = loop_of(maps(root.chain[0])[found[1]].results[-1])
    return "jk" if fastest == len(root.parallel) else "kj"
