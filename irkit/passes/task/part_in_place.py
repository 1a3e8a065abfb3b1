"""One rOperator for appends that update an operand in place, another for those that do not.

What is updated in place need not be stored where it does not change; elsewhere it must be. An rKernel is
printed for either, if it is used for either alone.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.task import AppendOp, ROperatorOp
from irkit.remarks import applied
from irkit.rkernels.accesses import appends_listed, appends_of


def part_in_place(module: ModuleOp) -> None:
    """Copy rOperators with `in_place` that are used in both ways."""
    taken = {op.sym_name.data for op in module.ops if isinstance(op, ROperatorOp)}
    roperators = [op for op in module.ops if isinstance(op, ROperatorOp)]
    # An append that is given another rOperator is one of those that are listed here for its own.
    with appends_listed(module):
        appended = [(op, appends_of(op)) for op in roperators]
    for op, appends in appended:
        updating = [append for append in appends if _updates(op, append)]
        if not op.in_place_pairs or not updating or len(updating) == len(appends):
            continue
        copy = op.clone()
        copy.properties["sym_name"] = type(op.sym_name)(_fresh(op.sym_name.data, taken))
        Rewriter.insert_op(copy, InsertPoint.after(op))
        applied(op, "SelectAccesses", "a copy for {} appends in place", len(updating))
        for append in updating:
            append.callee = SymbolRefAttr(copy.sym_name.data)


def _updates(op: ROperatorOp, append: AppendOp) -> bool:
    """Whether all operands that may be written over are."""
    return all(append.reads[o] is append.writes[r] for o, r in op.in_place_pairs)


def _fresh(name: str, taken: set[str]) -> str:
    number, found = 0, f"{name}_in_place"
    while found in taken:
        number, found = number + 1, f"{name}_in_place_{number + 1}"
    taken.add(found)
    return found
