"""Programs in parts, with collective ops between: parts are run, and ranks meet, as a proved plan says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from irkit.errors import DeviceError
from irkit.runtime.dist.engine import Engine, Queue
from irkit.runtime.program_state import ProgramState
from irkit.runtime.variant import Variant
from irkit.schedule.host.model import HOST, HostPlan
from irkit.weights import Array


@dataclass(frozen=True)
class PartCall:
    """A part, the values that it takes beside its state, and those that it gives, by number."""

    part: Variant
    arguments: tuple[int, ...]
    results: tuple[int, ...]


@dataclass(frozen=True)
class Meeting:
    """A collective op of one value: `how` is the kind of a reduction, `root` the rank of a broadcast. Where
    nobody else has the operand, it may be where the result goes (`own`)."""

    op: str
    operand: int
    result: int
    how: str = ""
    root: int = 0
    own: bool = True


class PartedProgram:
    """Parts of a program and what the ranks of a group do between them. One call at a time.

    State belongs to the last part, which alone writes it, when all else is done: a call that fails before
    leaves it as it was.
    """

    def __init__(
        self,
        engine: Engine,
        plan: HostPlan,
        actions: Sequence[PartCall | Meeting],
        inputs: Sequence[int],
        state: Mapping[int, int],
        results: Sequence[int],
    ) -> None:
        """`plan` is proved; its tasks are the `actions`. `inputs` and `results`: numbers of values; `state`:
        those that are state, and which."""
        self.engine, self.plan, self.actions = engine, plan, list(actions)
        self._inputs, self._results = list(inputs), list(results)
        keeper = next(a.part for a in reversed(self.actions) if isinstance(a, PartCall))
        self.state = ProgramState(keeper.state, keeper.info)
        self._memory = keeper.state
        held = engine.of_state(keeper.state) if state else []
        self._state = {value: held[number] for value, number in state.items()}
        self._queues: list[Queue] = [engine.queue() for _ in range(plan.queues - 1)]
        self._awaited = {
            wait
            for place in plan.places
            for wait in place.waits
            if plan.places[wait].queue != HOST
        }

    def run(self, inputs: Sequence[Any]) -> list[Array]:
        """All results, on the host. Raises InvalidInputError, DeviceError."""
        if self._memory is not None:
            self._memory.advance.require()
        values: dict[int, Any] = dict(self._state)
        values.update(zip(self._inputs, map(self.engine.placed, inputs), strict=True))
        events: dict[int, Any] = {}
        begun = self.engine.begin()
        try:
            for queue in self._queues if begun else ():
                queue.put(_nothing, begun)
            for number in range(len(self.actions)):
                self._start(number, values, events)
        finally:
            for queue in self._queues:
                queue.finish()
        return [self.engine.to_host(values[n]) for n in self._results]

    def _start(self, number: int, values: dict[int, Any], events: dict[int, Any]) -> None:
        place = self.plan.places[number]
        # The host does its own tasks one after another, so that those before have ended.
        before = [events[wait] for wait in place.waits if wait in events]
        if place.queue == HOST:
            for event in before:
                self.engine.wait(event)
            self._do(number, values)
            return
        queue = self._queues[place.queue - 1]
        queue.put(lambda: self._do(number, values), before)
        if number in self._awaited:
            events[number] = queue.record()

    def _do(self, number: int, values: dict[int, Any]) -> None:
        action = self.actions[number]
        if isinstance(action, PartCall):
            found = action.part.run([values[n] for n in action.arguments])
            values.update(zip(action.results, found, strict=True))
            return
        given = values[action.operand] if action.own else values[action.operand].copy()
        try:
            values[action.result] = self._met(action, given)
        except DeviceError as error:
            raise DeviceError(f"'{self.plan.tasks[number].name}': {error}") from error

    def _met(self, action: Meeting, given: Any) -> Any:
        if action.op == "dist.all_reduce":
            return self.engine.all_reduce(given, action.how)
        if action.op == "dist.broadcast":
            return self.engine.broadcast(given, action.root)
        return self.engine.all_gather(given)

    # Looking inside

    @property
    def parts(self) -> list[Variant]:
        """The parts, in order."""
        return [a.part for a in self.actions if isinstance(a, PartCall)]

    def report(self) -> dict[str, Any]:
        """What was compiled, what the ranks do together, and how each part runs."""
        parts = [part.report() for part in self.parts]
        together = [t for t in self.plan.tasks if t.kind == "collective"]
        return {
            "target": self.engine.target,
            "engine": self.engine.name,
            "rank": self.engine.rank,
            "ranks": self.engine.size,
            "proved": all(bool(p.get("proved")) for p in parts),
            "parts": parts,
            "tasks": [(t.name, t.kind, p.queue, p.waits) for t, p in self._placed()],
            "collectives": [t.name for t in together],
        }

    def _placed(self) -> list[tuple[Any, Any]]:
        return list(zip(self.plan.tasks, self.plan.places, strict=True))


def _nothing() -> None:
    """What is put behind it waits."""
