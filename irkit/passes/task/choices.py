"""What a policy chose for each launch, written into the IR."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.task import AlternativeAttr, LaunchOp, ROperatorOp
from irkit.remarks import applied

Chosen = tuple[LaunchOp, int]
"""A launch, and the number of its rOperator's alternative."""


def write_choices(module: ModuleOp, chosen: Iterable[Chosen]) -> dict[Chosen, str]:
    """Give each rOperator with alternatives the one that its launches chose: one rOperator for each, of which
    the first keeps the name, @gemm_0, and others are @gemm_0_1 and so on. What no launch uses gets its first.

    A launch that several schedules choose for names the rOperator of one of them: all compute the same.
    Returns the symbol of the rOperator of every choice.
    """
    names = {op.sym_name.data for op in module.ops if isinstance(op, ROperatorOp)}
    launches: dict[str, dict[int, list[LaunchOp]]] = {}
    for launch, number in dict.fromkeys(chosen):
        of = launches.setdefault(launch.callee.string_value(), {})
        of.setdefault(number, []).append(launch)
    named: dict[Chosen, str] = {}
    for op in [o for o in module.ops if isinstance(o, ROperatorOp) and o.alternatives is not None]:
        assert op.alternatives is not None
        offered = op.alternatives.data
        choices = launches.get(op.sym_name.data, {0: []})
        copies = _copies(op, len(choices), names)
        for made, (number, uses) in zip(copies, choices.items(), strict=True):
            _choose(made, offered[number], uses)
            named.update(((launch, number), made.sym_name.data) for launch in uses)
    for (launch, _), symbol in reversed(named.items()):
        launch.callee = SymbolRefAttr(symbol)
    return named


def _copies(op: ROperatorOp, count: int, names: set[str]) -> list[ROperatorOp]:
    """`op`, and behind it copies of it with names of their own."""
    made, number = [op], 0
    while len(made) < count:
        number += 1
        name = f"{op.sym_name.data}_{number}"
        if name in names:
            continue
        names.add(name)
        copy = op.clone()
        copy.sym_name = StringAttr(name)
        for mine, its in zip(op.walk(), copy.walk(), strict=True):
            its.location = mine.location
        Rewriter.insert_op(copy, InsertPoint.after(made[-1]))
        made.append(copy)
    return made


def _choose(op: ROperatorOp, alternative: AlternativeAttr, uses: list[LaunchOp]) -> None:
    op.choose(alternative)
    text = "@{}: {} in a grid of {}, {:.0f} ns an rTask, launched {} times"
    name, grid = op.sym_name.data, list(alternative.grid)
    applied(
        op, "ChooseRKernel", text, name, alternative.rkernel, grid, alternative.cost_ns, len(uses)
    )
