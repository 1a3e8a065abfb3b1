"""The parts of a run in an order in which those of one device stand together, as dependences let them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation

from irkit.passes.placement.flow import unit_uses
from irkit.passes.placement.units import Unit, top


@dataclass
class Group:
    """Units that follow one another on one device: a region."""

    on_gpu: bool
    units: list[Unit] = field(default_factory=list[Unit])

    @property
    def ops(self) -> list[Operation]:
        """All their ops, in order."""
        return [op for unit in self.units for op in unit.ops]


def grouped(units: Sequence[Unit], on_gpu: Sequence[bool]) -> list[Group]:
    """Regions of a run of units, in an order that keeps every dependence: as long as a unit of the device at
    hand may go on, it does."""
    before = _dependences(units)
    left = list(range(len(units)))
    groups: list[Group] = []
    done: set[int] = set()
    while left:
        ready = [n for n in left if before[n] <= done]
        same = [n for n in ready if groups and on_gpu[n] == groups[-1].on_gpu]
        chosen = (same or ready)[0]
        if not same:
            groups.append(Group(on_gpu[chosen]))
        groups[-1].units.append(units[chosen])
        done.add(chosen)
        left.remove(chosen)
    return groups


def _dependences(units: Sequence[Unit]) -> list[set[int]]:
    """For each unit the earlier ones that it has to follow."""
    home = {op: n for n, unit in enumerate(units) for op in unit.ops}
    uses = [{use.buffer: use.writes for use in unit_uses(unit.ops)} for unit in units]
    found: list[set[int]] = []
    for number, unit in enumerate(units):
        makers = {
            home.get(top(value.owner, op.parent))
            for op in unit.ops
            for inner in op.walk()
            for value in inner.operands
            if isinstance(value.owner, Operation)
        }
        before = {m for m in makers if m is not None and m != number}
        for earlier in range(number):
            shared = uses[earlier].keys() & uses[number].keys()
            if any(uses[earlier][b] or uses[number][b] for b in shared):
                before.add(earlier)
        found.append(before)
    return found
