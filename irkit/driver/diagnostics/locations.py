"""Keep source locations through rewrites: what replaces an op stands where the op stood.

xDSL's rewriter tells a listener what it replaces, but passes build their own walkers and take no
listener. So the listener class itself calls `inherit_location` while a pass of irkit's tools runs.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, FileLineColLoc, FusedLoc, NameLoc, UnknownLoc
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriterListener

from irkit.driver.diagnostics.diagnostic import Place


def inherit_location(op: Operation, new_results: Sequence[SSAValue | None]) -> None:
    """Give `op`'s location to every new op, one without a location, that `new_results` come from."""
    if isinstance(op.location, UnknownLoc):
        return
    pending = [v.owner for v in new_results if v is not None]
    while pending:
        owner = pending.pop()
        if not isinstance(owner, Operation) or not isinstance(owner.location, UnknownLoc):
            continue
        for inner in owner.walk():
            if isinstance(inner.location, UnknownLoc):
                inner.location = op.location
        pending.extend(v.owner for v in owner.operands)


_keeping: ContextVar[bool] = ContextVar("irkit-keeps-locations", default=False)
_xdsl_handler = PatternRewriterListener.handle_operation_replacement


def _handle_replacement(
    self: Any, op: Operation, new_results: Sequence[SSAValue | None]
) -> None:  # the listener's own signature
    if _keeping.get():
        inherit_location(op, new_results)
    _xdsl_handler(self, op, new_results)


# Once for the process: threads that compile side by side must not take it from one another.
PatternRewriterListener.handle_operation_replacement = _handle_replacement


@contextmanager
def locations_kept() -> Generator[None]:
    """While active, every pattern rewriter of this thread hands locations on."""
    token = _keeping.set(True)
    try:
        yield
    finally:
        _keeping.reset(token)


def adopt_locations(root: Operation) -> None:
    """Place ops that a pass made without the rewriter: where their first located user stands, else
    what they use, else what they contain, else the op around them."""
    # Backwards: users and contents come before definitions and containers.
    for op in reversed(list(root.walk())):
        if isinstance(op.location, UnknownLoc):
            op.location = next(
                (n.location for n in _neighbours(op) if not isinstance(n.location, UnknownLoc)),
                op.location,
            )
        for block in (block for region in op.regions for block in region.blocks):
            for argument in block.args:
                if isinstance(argument.location, UnknownLoc):
                    argument.location = op.location


def _neighbours(op: Operation) -> Iterator[Operation]:
    """Ops that a new op most likely came from, best first."""
    for result in op.results:
        yield from (use.operation for use in result.uses)
    yield from (v.owner for v in op.operands if isinstance(v.owner, Operation))
    for region in op.regions:
        for block in region.blocks:
            yield from block.ops
    if (parent := op.parent_op()) is not None:
        yield parent


def place_of(op: Operation | None) -> Place | None:
    """Where `op`, or failing that the op around it, stands in a file."""
    while op is not None:
        if (place := file_place(op.location, len(op.name))) is not None:
            return place
        op = op.parent_op()
    return None


def file_place(location: Attribute, length: int) -> Place | None:
    """Where a location points in a file, `length` characters from there; None if it does not."""
    match location:
        case FileLineColLoc():
            file, line, column = location.filename, location.line, location.column
            return Place(file.data, line.data, column.data, length)
        case NameLoc():
            return file_place(location.location, length)
        case FusedLoc():
            parts = cast(ArrayAttr[Attribute], location.locations)
            return next(filter(None, (file_place(a, length) for a in parts)), None)
        case _:
            return None
