"""Ways to cut a launch by which no rTask needs what another one made just before."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from irkit.schedule.dependences import Dependences
from irkit.schedule.footprint import Touch
from irkit.schedule.model import Launch, Option

Pairs = tuple[tuple[int, int], ...]


@dataclass
class Nearness:
    """Of launches of a program that is layered: `near(n)` says of each way to run launch n whether it can do
    without a wait before or behind it, since each rTask goes where what it reads was made, or what reads it
    goes where it was.

    Two launches can if what an rTask of the one reads of the other, cut into as many, is all written by the
    rTask of its number. Of the launches that one depends on those of the layer before it count, of those
    that depend on it those of the next.
    """

    launches: Sequence[Launch]
    graph: Dependences
    depth: Sequence[int]
    _known: dict[tuple[str, str, Pairs, int], bool] = field(
        default_factory=dict[tuple[str, str, Pairs, int], bool]
    )

    def near(self, number: int) -> tuple[bool, ...]:
        """By option; of a launch without a choice one."""
        ways = self.launches[number].options
        if not ways:
            return (False,)
        sources = self._next(number, self.graph.sources[number], -1)
        users = self._next(number, self.graph.users[number], 1)
        return tuple(
            way.tasks > 1
            and (
                (bool(sources) and all(self._is_near(s, number, way.tasks) for s in sources))
                or any(self._is_near(number, user, way.tasks) for user in users)
            )
            for way in ways
        )

    def _next(self, number: int, others: Iterable[int], distance: int) -> list[int]:
        """Those of `others` that are so many layers below a launch."""
        return [n for n in others if self.depth[n] == self.depth[number] + distance]

    def _is_near(self, source: int, user: int, tasks: int) -> bool:
        """Whether both have a way of so many rTasks, of which each rTask reads what the one of its number
        writes."""
        pairs = _pairs(self.graph.sources[user][source])
        if pairs is None:
            return False
        made, read = self.launches[source], self.launches[user]
        key = made.symbol, read.symbol, pairs, tasks
        if key not in self._known:
            both = ([one for one in n.options if one.tasks == tasks] for n in (made, read))
            self._known[key] = any(
                _inside(a, b, len(made.reads), pairs) for a, b in itertools.product(*both)
            )
        return self._known[key]


def _pairs(touches: Sequence[tuple[Touch, Touch]]) -> Pairs | None:
    """(operand that writes, operand that reads the same buffer) of all dependences of one launch on another;
    None where there is another one."""
    plain = all(a.writes and not b.writes and a.buffer == b.buffer for a, b in touches)
    return tuple(sorted({(a.operand, b.operand) for a, b in touches})) if plain else None


def _inside(source: Option, user: Option, reads: int, pairs: Pairs) -> bool:
    """Whether what each rTask of `user` reads is written by that of its number; `source` has so many
    `reads`."""
    theirs, mine = source.boxes(), user.boxes()
    for writes, operand in pairs:
        read, written = mine[operand], theirs[reads + writes]
        below, above = read[..., 0] >= written[..., 0], read[..., 1] <= written[..., 1]
        if not (below & above).all():
            return False
    return True
