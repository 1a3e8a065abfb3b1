"""Schedules one after another, and in loops, as one: the proof that they are their function.

Between two runs all vEUs meet, so that whatever one run does happens before what the next does, in every
mode; inside a run its own proof holds. What is left to show is that each run is a call of the function, in
its order and its loops, on what that call is given: an abstract interpretation of the runs over what each
buffer holds, where a loop is one iteration of whose start nothing is known but that the places of what it
carries hold that (induction over the iterations).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irkit.schedule.composite import (
    ALIGNED,
    Called,
    Composed,
    Composite,
    Cut,
    Looped,
    Op,
    Part,
    Put,
    Repeat,
    Run,
    Step,
    While,
    Window,
    runs_of,
)
from irkit.schedule.meaning import Port
from irkit.schedule.model import Buffer
from irkit.schedule.wellformed import reject

Turns = tuple[int | None, ...]
"""How many turns each loop around makes, from outside; None where data say so."""


def prove_composite(composite: Composite, function: Composed, parts: Mapping[str, Part]) -> None:
    """Prove that `composite` computes `function`, or raise ScheduleError naming the rule.

    `parts` are the programs, which are proved by themselves, on operands that lie as this composite has them.
    """
    _Proof(composite, function, parts).run()


class _Proof:
    def __init__(self, composite: Composite, function: Composed, parts: Mapping[str, Part]) -> None:
        self.composite, self.function, self.parts = composite, function, parts
        self.buffers = composite.buffers
        # What value each buffer holds; and what was put into it since, and where.
        self.holds: dict[int, int | None] = dict.fromkeys(range(len(self.buffers)))
        self.put: dict[int, list[tuple[Run, Window, int]]] = {}
        self.cuts: dict[int, Cut] = {}

    def run(self) -> None:
        self._check_ports()
        self._check_memory()
        for buffer, kept in enumerate(self.buffers):
            if kept.space in ("input", "state"):
                self.holds[buffer] = self.function.arguments[self._number(kept, 0)]
        self._steps(self.composite.steps, self.function.body, ())
        for buffer, kept in enumerate(self.buffers):
            if kept.space not in ("output", "state"):
                continue
            number = self._number(kept, 1)
            if self.holds[buffer] != self.function.returned[number] or self.put.get(buffer):
                reject(
                    "meaning",
                    f"'{kept.name}' does not hold output {number} of @{self.function.name} at the end",
                )

    def _number(self, buffer: Buffer, side: int) -> int:
        """Which argument (0) or result (1) of the function a buffer is."""
        assert buffer.port is not None
        return self.function.state[buffer.port][side] if buffer.space == "state" else buffer.port

    def _check_ports(self) -> None:
        name, function = self.function.name, self.function
        held, kept = {a for a, _ in function.state}, {r for _, r in function.state}
        spaces = {
            "input": {n: p for n, p in enumerate(function.inputs) if n not in held},
            "output": {n: p for n, p in enumerate(function.outputs) if n not in kept},
            "state": {n: function.inputs[a] for n, (a, _) in enumerate(function.state)},
        }
        for space, ports in spaces.items():
            found = [b for b in self.buffers if b.space == space]
            if sorted(b.port if b.port is not None else -1 for b in found) != [*ports]:
                reject("meaning", f"the {space} buffers are not the {space}s of @{name}, each once")
            for buffer in found:
                wanted = ports[buffer.port or 0]
                if Port(buffer.shape, buffer.element) != wanted:
                    reject(
                        "meaning", f"'{buffer.name}' is not of the type of its {space} of @{name}"
                    )
        for buffer in self.buffers:
            if buffer.space not in (*spaces, "arena"):
                reject(
                    "meaning", f"'{buffer.name}' is {buffer.space} memory, which is a program's own"
                )

    def _check_memory(self) -> None:
        """Rule 'arena': buffers lie in their space, and share no byte."""
        end = 0
        own = [b for b in self.buffers if b.space == "arena"]
        for buffer in sorted(own, key=lambda b: -1 if b.offset is None else b.offset):
            if buffer.offset is None or buffer.offset < 0 or buffer.offset % ALIGNED:
                reject("arena", f"'{buffer.name}' is at {buffer.offset}, no multiple of {ALIGNED}")
            if buffer.offset < end:
                reject("arena", f"'{buffer.name}' shares bytes with the buffer before it")
            end = buffer.offset + buffer.nbytes
        if end > self.composite.link_bytes:
            reject("arena", f"{self.composite.link_bytes} bytes are planned, {end} are needed")

    def _steps(self, steps: Sequence[Step], body: Sequence[Op], trips: Turns) -> None:
        """Steps of one block of the function."""
        left = list(steps)
        for op in body:
            if isinstance(op, Cut):
                self.cuts[op.result] = op
            elif isinstance(op, Put):
                self._put(op, trips)
            elif not left:
                reject("once", f"a {_what(op)} of @{self.function.name} is in no step")
            elif isinstance(op, Looped):
                self._loop(left.pop(0), op, trips)
            else:
                self._call(left.pop(0), op, trips)
        if left:
            reject("once", f"a {_named(left[0])} is no call or loop of @{self.function.name} there")

    def _loop(self, step: Step, op: Looped, trips: Turns) -> None:
        if isinstance(step, Run):
            reject("meaning", f"a {_named(step)} stands for a loop of @{self.function.name}")
        if (step.trips if isinstance(step, Repeat) else None) != op.trips:
            reject(
                "meaning",
                f"a loop of @{self.function.name} is run {_often(step)}, not {_times(op.trips)}",
            )
        places = [self._place_of(value) for value in op.start]
        if len(set(places)) < len(places):
            reject("meaning", "two values that a loop carries start in one buffer")
        if isinstance(step, While) and step.condition != places[op.asked]:
            reject(
                "meaning", f"a loop of @{self.function.name} asks for another value than is meant"
            )
        self._forget(step, places)
        for place, argument in zip(places, op.arguments, strict=True):
            self.holds[place] = argument
        self._steps(step.steps, op.body, (*trips, op.trips))
        for place, value in zip(places, op.yielded, strict=True):
            if self.holds[place] != value or self.put.get(place):
                name = self.buffers[place].name
                reject("meaning", f"'{name}' does not hold what an iteration leaves there")
        self._forget(step, places)
        for place, result in zip(places, op.results, strict=True):
            self.holds[place] = result

    def _place_of(self, value: int) -> int:
        found = [b for b, held in self.holds.items() if held == value and not self.put.get(b)]
        if not found:
            reject("meaning", "what a loop starts from is in no buffer")
        return found[0]

    def _forget(self, step: Repeat | While, places: Sequence[int]) -> None:
        """Of what other iterations write nothing is known."""
        for run in runs_of(step.steps):
            for window in (*run.writes, *run.state):
                if window.buffer not in places:
                    self.holds[window.buffer] = None
                    self.put.pop(window.buffer, None)

    def _call(self, step: Step, op: Called, trips: Turns) -> None:
        if not isinstance(step, Run):
            reject("meaning", f"a loop stands for a call of @{op.function}")
        part = self.parts.get(step.program)
        if part is None:
            reject("launch", f"there is no program @{step.program}")
        if part.function != op.function:
            reject("meaning", f"@{step.program} is no schedule of @{op.function}, which is called")
        counts = (len(part.given), len(part.made), len(part.state))
        if counts != (len(step.reads), len(step.writes), len(step.state)):
            reject("meaning", f"the run of @{step.program} has not the operands of @{op.function}")
        reads = [(w, part.inputs[n], n) for w, n in zip(step.reads, part.given, strict=True)]
        held = [(w, part.inputs[a], a) for w, (a, _) in zip(step.state, part.state, strict=True)]
        made = [(w, part.outputs[n], n) for w, n in zip(step.writes, part.made, strict=True)]
        for window, nbytes, _ in (*reads, *held, *made):
            self._check_window(step, window, nbytes, trips)
        self._check_apart(
            step, [w for w, *_ in reads], [w for w, *_ in (*held, *made)], part, trips
        )
        for window, _, argument in (*reads, *held):
            self._check_read(step, window, op.arguments[argument])
        results = [(w, r) for w, (_, r) in zip(step.state, part.state, strict=True)]
        for window, result in (*results, *((w, n) for w, _, n in made)):
            self._write(step, window, op.results[result])

    def _check_window(self, run: Run, window: Window, nbytes: int, trips: Turns) -> None:
        """Rule 'access': in every iteration a window lies in its buffer."""
        if not 0 <= window.buffer < len(self.buffers):
            reject("access", f"the run of @{run.program} names a buffer that does not exist")
        buffer = self.buffers[window.buffer]
        if len(window.steps) > len(trips):
            reject("access", f"'{buffer.name}' moves with more loops than there are")
        if any(s for s, n in zip(window.steps, trips, strict=False) if n is None):
            reject("access", f"'{buffer.name}' moves with a loop whose turns nobody knows")
        low, high = reach(window, trips)
        if low < 0 or high + nbytes > buffer.nbytes:
            reject(
                "access",
                f"the run of @{run.program} touches bytes {low} to {high + nbytes} of '{buffer.name}', which "
                f"has {buffer.nbytes}",
            )
        moved = (window.offset, *window.steps)
        if any(n % buffer.itemsize for n in moved):
            size = buffer.itemsize
            reject("access", f"a slice of '{buffer.name}' lies at no multiple of {size} bytes")

    def _check_apart(
        self,
        run: Run,
        reads: Sequence[Window],
        writes: Sequence[Window],
        part: Part,
        trips: Turns,
    ) -> None:
        """Rule 'alias': what a run writes is apart from all else that it touches, in every iteration."""
        sizes = [part.inputs[n] for n in part.given]
        made = [part.inputs[a] for a, _ in part.state] + [part.outputs[n] for n in part.made]
        touched = [(w, n) for w, n in zip((*reads, *writes), (*sizes, *made), strict=True)]
        for number, (a, size) in enumerate(touched):
            for b, other in touched[max(number + 1, len(reads)) :]:
                if a.buffer == b.buffer and not apart(a, size, b, other, trips):
                    name = self.buffers[a.buffer].name
                    reject(
                        "alias",
                        f"the run of @{run.program} writes bytes of '{name}' that it touches twice",
                    )

    def _check_read(self, run: Run, window: Window, value: int) -> None:
        """Rule 'meaning': a run reads what the call is given."""
        cut, buffer = self.cuts.get(value), self.buffers[window.buffer]
        source = value if cut is None else cut.source
        wanted = (
            Window(window.buffer) if cut is None else Window(window.buffer, cut.offset, cut.steps)
        )
        if self.holds[window.buffer] != source or self.put.get(window.buffer):
            reject(
                "meaning",
                f"the run of @{run.program} reads '{buffer.name}', which holds another value",
            )
        whole = cut is not None or self.function.nbytes[value] == buffer.nbytes
        if not whole or not _same(window, wanted):
            reject(
                "meaning",
                f"the run of @{run.program} reads other bytes of '{buffer.name}' than are meant",
            )

    def _write(self, run: Run, window: Window, value: int) -> None:
        buffer = self.buffers[window.buffer]
        if buffer.space == "input":
            reject(
                "constant",
                f"the run of @{run.program} writes to '{buffer.name}', which is input memory",
            )
        if self.function.nbytes[value] == buffer.nbytes:
            self.holds[window.buffer] = value
            self.put.pop(window.buffer, None)
        else:
            # Windows of one run are apart; those of another might lie over these.
            if any(other is not run for other, _, _ in self.put.get(window.buffer, ())):
                reject(
                    "meaning", f"a slice of '{buffer.name}' is written before the last is inserted"
                )
            self.put.setdefault(window.buffer, []).append((run, window, value))

    def _put(self, op: Put, trips: Turns) -> None:
        """A slice has been written where it is inserted."""
        for buffer, waiting in self.put.items():
            for number, (_, window, value) in enumerate(waiting):
                placed = _same(window, Window(buffer, op.offset, op.steps))
                if value == op.source and placed and self.holds[buffer] == op.dest:
                    self.holds[buffer] = op.result
                    waiting.pop(number)
                    return
        nbytes = self.function.nbytes
        if nbytes[op.source] == nbytes[op.dest]:
            # All of it: a value of its own already.
            for buffer, held in self.holds.items():
                if held == op.source:
                    self.holds[buffer] = op.result
                    return
        reject("meaning", f"a slice of @{self.function.name} is not written where it is inserted")


def reach(window: Window, trips: Turns) -> tuple[int, int]:
    """The first bytes of a window over all iterations: the lowest and the highest. It moves with no loop
    whose turns nobody knows."""
    ends = [s * (n - 1) for s, n in zip(window.steps, trips, strict=False) if n is not None]
    return (
        window.offset + sum(min(e, 0) for e in ends),
        window.offset + sum(max(e, 0) for e in ends),
    )


def apart(a: Window, a_bytes: int, b: Window, b_bytes: int, trips: Turns) -> bool:
    """Whether two windows of one buffer share no byte in any one iteration."""
    steps = tuple(
        (b.steps[d] if d < len(b.steps) else 0) - (a.steps[d] if d < len(a.steps) else 0)
        for d in range(len(trips))
    )
    low, high = reach(Window(a.buffer, b.offset - a.offset, steps), trips)
    return low >= a_bytes or high <= -b_bytes


def _same(a: Window, b: Window) -> bool:
    """Whether two windows are the same bytes: of the loops that neither names, none moves them."""
    depth = max(len(a.steps), len(b.steps))
    padded = [(*w.steps, *(0,) * (depth - len(w.steps))) for w in (a, b)]
    return (a.buffer, a.offset, padded[0]) == (b.buffer, b.offset, padded[1])


def _times(trips: int | None) -> str:
    return "as long as data say so" if trips is None else f"{trips} times"


def _often(step: Repeat | While) -> str:
    return _times(step.trips if isinstance(step, Repeat) else None)


def _what(op: Op) -> str:
    return "loop" if isinstance(op, Looped) else "call"


def _named(step: Step) -> str:
    return f"run of @{step.program}" if isinstance(step, Run) else "loop"
