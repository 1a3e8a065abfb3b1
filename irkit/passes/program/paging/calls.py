"""One call of a region, in chunks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import SSAValue

from irkit.dialects.program.spaces import in_device_space
from irkit.dialects.program.views import Affine, array_type, row_major
from irkit.passes.program.paging.budget import Budget, Size, bytes_of, ring
from irkit.passes.program.paging.emission import Slots, Writer, add_function
from irkit.passes.program.splitting.bands import Band
from irkit.passes.program.splitting.functions import (
    array_of,
    begin_function,
    chunk_function,
    end_function,
)
from irkit.passes.program.splitting.rules import shape_of
from irkit.passes.program.splitting.sweeps import Ended, Merge, SplitPlan, Sweep
from irkit.weights import WeightStore


@dataclass(frozen=True)
class PagedSweep:
    """What became of a sweep: how many chunks of how many rows there are, `rest` rows in a last one, and
    bytes in and out of the device in all."""

    region: str
    units: int
    size: Size
    chunks: int
    rest: int
    bytes_in: int
    bytes_out: int
    whole: tuple[str, ...]
    merged: tuple[str, ...]
    halo: int


class PagedCall:
    """Writes the program of one call, in chunks."""

    def __init__(
        self,
        module: ModuleOp,
        main: FuncOp,
        call: CallOp,
        plan: SplitPlan,
        weights: WeightStore,
        buffers: int,
    ) -> None:
        self._module, self._plan, self._weights = module, plan, weights
        self._buffers = buffers
        self._name = call.callee.string_value()
        self._out = Writer(main, call)
        arguments = plan.function.body.block.args
        self._hosts: dict[SSAValue, SSAValue] = dict(zip(arguments, call.operands, strict=True))
        self._sums: dict[Merge, SSAValue] = {}
        self._wholes: dict[SSAValue, SSAValue] = {}
        self._targets: dict[int, SSAValue] = {}
        self._made = 0
        self._shadows: dict[SSAValue, SSAValue] = {}

    def write(
        self,
        budgets: Sequence[tuple[Budget, Size]],
        homes: dict[int, SSAValue],
        given: Collection[SSAValue],
    ) -> list[PagedSweep]:
        """All of it; `homes` are the buffers that results are written to, but for those that are `given`."""
        for number, buffer in homes.items():
            self._targets[number] = self._target(number, buffer, buffer in given)
        self._end(list(self._plan.bases.items()), [])
        self._ended(-1)
        found: list[PagedSweep] = []
        sweeps = self._plan.sweeps
        for number, (sweep, (budget, size)) in enumerate(zip(sweeps, budgets, strict=True)):
            found.append(self._sweep(sweep, budget, size))
            last = number + 1 == len(sweeps)
            if last or sweeps[number + 1].level > sweep.level:
                self._ended(sweep.level)
        return found

    def finish(self, given: Collection[SSAValue]) -> dict[SSAValue, SSAValue]:
        """Write arrays whose old elements were needed, but those that are `given`: what would be in these."""
        for buffer, shadow in self._shadows.items():
            if buffer not in given:
                self._out.copy(shadow, buffer)
        return {b: s for b, s in self._shadows.items() if b in given}

    # -- results

    def _target(self, number: int, buffer: SSAValue, shadow: bool) -> SSAValue:
        if not shadow and not self._read_elsewhere(number, buffer):
            return buffer
        made = self._out.alloc(array_type(buffer), buffer.name_hint)
        self._shadows[buffer] = made
        if not self._is_filled(number):
            self._out.copy(buffer, made)
        return made

    def _is_filled(self, number: int) -> bool:
        """Whether all of a result is written."""
        if number in self._plan.bases or number in self._plan.ended:
            return True
        writes = [w for s in self._plan.sweeps for w in s.writes if w.result == number]
        return any(w.insert is None for w in writes)

    def _read_elsewhere(self, number: int, buffer: SSAValue) -> bool:
        """Whether what was in a buffer is needed when some chunk has written it."""
        argument = next((a for a, b in self._hosts.items() if b is buffer), None)
        if argument is None:
            return False
        ends = [*self._plan.ended.values(), *self._plan.given.values()]
        if any(argument in end.arguments for end in ends):
            return True
        writes = [(s, w) for s in self._plan.sweeps for w in s.writes if w.result == number]
        readers = [
            s
            for s in self._plan.sweeps
            if argument in s.demands.bands or argument in s.demands.wholes
        ]
        if not readers:
            return False
        if len(writes) != 1 or len(readers) > 1 or readers[0] is not writes[0][0]:
            return True
        sweep, write = writes[0]
        read = sweep.demands.bands.get(argument)
        if read is None or argument in sweep.demands.wholes:
            return True
        same = shape_of(argument) == write.shape and read.halo == 0
        return not (same and read == write.under)

    # -- sweeps

    def _sweep(self, sweep: Sweep, budget: Budget, size: Size) -> PagedSweep:
        chunk, out = budget.chunk, self._out
        name = self._named("chunk")
        self._chunk_function(sweep, size.units, name)
        wholes = [self._whole(v) for v in chunk.wholes]
        sums = self._begun(chunk.merges, ring(size.slots))
        slots = [self._slots(budget, size.units) for _ in range(size.slots)]
        count, rest = divmod(sweep.units, size.units)
        writer = _ChunkWriter(out, sweep, budget, self._hosts, self._targets, wholes, sums)

        def body(variable: SSAValue) -> None:
            for number in range(len(sums)):
                first = Affine(number * size.units, {variable: size.units})
                writer.write(number, first, slots[number % len(slots)], size.units, name)

        rounds = count - count % len(sums)
        if rounds > len(sums):
            out.loop(rounds, len(sums), body)
        else:
            rounds = 0
        for number in range(rounds, count):
            slot = slots[number % len(slots)]
            writer.write(number, Affine(number * size.units), slot, size.units, name)
        if rest:
            last = self._named("rest")
            self._chunk_function(sweep, rest, last)
            slot = self._slots(budget, rest)
            writer.write(count, Affine(count * size.units), slot, rest, last)
        ended = sums[(count + bool(rest)) % len(sums)]
        for merge, device in zip(chunk.merges, ended, strict=True):
            out.copy(device, self._sums[merge])
        return _described(self._name, sweep, budget, size)

    def _named(self, what: str) -> str:
        self._made += 1
        return f"{self._name}_{what}{self._made - 1}"

    def _chunk_function(self, sweep: Sweep, units: int, name: str) -> None:
        function = chunk_function(name, self._plan, sweep, units, self._weights, in_device_space)
        add_function(self._module, function)

    def _slots(self, budget: Budget, units: int) -> Slots:
        types, rows = budget.moving(units), len(budget.chunk.rows)
        made = [self._out.device(t) for t in types]
        for array, argument in zip(made, budget.chunk.rows, strict=False):
            array.name_hint = argument.name_hint
        return Slots(made[:rows], made[rows:])

    def _whole(self, value: SSAValue) -> SSAValue:
        """A value as a whole on the device."""
        if value not in self._wholes:
            made = self._out.device(array_of(value), value.name_hint)
            self._out.copy(self._hosts[value], made)
            self._wholes[value] = made
        return self._wholes[value]

    def _begun(self, merges: Sequence[Merge], copies: int) -> list[list[SSAValue]]:
        """Arrays on the device for what is merged, of which the first hold what reductions of nothing
        are."""
        if not merges:
            return [[] for _ in range(copies)]
        name = self._named("begin")
        add_function(self._module, begin_function(name, self._plan, merges, self._weights))
        for merge in merges:
            self._sums[merge] = self._out.alloc(array_of(merge.op.y))
        self._out.call(name, [self._sums[m] for m in merges])
        made = [[self._out.device(array_of(m.op.y)) for m in merges] for _ in range(copies)]
        for merge, array in zip(merges, made[0], strict=True):
            self._out.copy(self._sums[merge], array)
        return made

    # -- what follows from sweeps

    def _ended(self, level: int) -> None:
        plan = self._plan
        results = [(n, e) for n, e in plan.ended.items() if e.level == level]
        self._end(results, [e for e in plan.given.values() if e.level == level])

    def _end(self, results: list[tuple[int, Ended]], given: list[Ended]) -> None:
        if not results and not given:
            return
        ends = [*(e for _, e in results), *given]
        function, merges, arguments = end_function(
            self._named("end"), self._plan, ends, self._weights
        )
        add_function(self._module, function)
        for end in given:
            self._hosts[end.value] = self._out.alloc(array_of(end.value))
        targets = [self._targets[n] for n, _ in results]
        arrays = [*(self._sums[m] for m in merges), *(self._hosts[a] for a in arguments)]
        shown = [self._shaped(t, e.value) for t, (_, e) in zip(targets, results, strict=True)]
        arrays += [*shown, *(self._hosts[e.value] for e in given)]
        self._out.call(function.sym_name.data, arrays)
        for target, array in zip(targets, shown, strict=True):
            if array is not target:
                shape = array_type(array).get_shape()
                self._out.copy(array, self._out.view(target, Affine(), shape, row_major(shape)))

    def _shaped(self, target: SSAValue, value: SSAValue) -> SSAValue:
        """The array that a value goes to: a function takes no array under another shape."""
        want = array_of(value)
        return target if array_type(target) == want else self._out.alloc(want)


@dataclass(frozen=True)
class _ChunkWriter:
    """Writes chunks of a sweep: `wholes` and `sums` are on the device, `hosts` and `targets` on the host."""

    out: Writer
    sweep: Sweep
    budget: Budget
    hosts: Mapping[SSAValue, SSAValue]
    targets: Mapping[int, SSAValue]
    wholes: Sequence[SSAValue]
    sums: Sequence[Sequence[SSAValue]]

    def write(self, number: int, at: Affine, slot: Slots, units: int, name: str) -> None:
        """Chunk `number`, of `units` units from `at` on, in the arrays of a slot."""
        out, bands, chunk = self.out, self.sweep.demands.bands, self.budget.chunk
        for argument, array in zip(chunk.rows, slot.rows, strict=True):
            band, shape = bands[argument], shape_of(argument)
            host = self.hosts[argument]
            out.copy(out.rows(host, shape, band.axis, _first(band, at), band.count(units)), array)
        before, after = (self.sums[n % len(self.sums)] for n in (number, number + 1))
        arrays = [*slot.rows, *self.wholes, *before, *after, *slot.writes]
        out.call(name, arrays, on_device=True)
        for write, array in zip(chunk.writes, slot.writes, strict=True):
            first = _first(write.under, at)
            host = self.targets[write.result]
            rows = out.rows(host, write.shape, write.axis, first, write.band.count(units))
            out.copy(array, rows)


def _described(region: str, sweep: Sweep, budget: Budget, size: Size) -> PagedSweep:
    chunk = budget.chunk
    count, rest = divmod(sweep.units, size.units)
    rows = len(chunk.rows)
    into = sum(bytes_of(array_of(v)) for v in chunk.wholes)
    gone = 0
    for units, times in ((size.units, count), (rest, 1)) if rest else ((size.units, count),):
        moving = budget.moving(units)
        into += times * sum(map(bytes_of, moving[:rows]))
        gone += times * sum(map(bytes_of, moving[rows:]))
    sums = sum(bytes_of(array_of(m.op.y)) for m in chunk.merges)
    return PagedSweep(
        region,
        sweep.units,
        size,
        count,
        rest,
        into + sums,
        gone + sums,
        tuple(v.name_hint or "a value" for v in chunk.wholes),
        tuple(m.op.kind.data for m in chunk.merges),
        max((sweep.demands.bands[a].halo for a in chunk.rows), default=0),
    )


def _first(band: Band, at: Affine) -> Affine:
    return Affine(band.low).plus(at, band.scale)


def unread(call: CallOp, buffer: SSAValue) -> bool:
    """Whether nobody sees what a call leaves in a buffer: one that was allocated for it alone."""
    owner = buffer.owner
    if not isinstance(owner, memref.AllocOp) or owner.parent is not call.parent:
        return False
    return all(use.operation is call for use in buffer.uses)
