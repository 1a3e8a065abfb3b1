"""How an rKernel may read its operands, as far as the schedule decides it: in vectors, from shared memory.

Both are facts about all appends of an rOperator: `select-accesses` writes them on it once memory is planned,
and the legality check holds it to them.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from irkit.dialects.task import (
    AppendOp,
    BufferOp,
    CompositeOp,
    ProgramOp,
    ROperatorOp,
    RunOp,
    ViewOp,
)
from irkit.dialects.task.composite import Place
from irkit.dialects.types import ints
from irkit.rkernels import registry
from irkit.rkernels.binding.binder import Binding
from irkit.rkernels.rkernel import RKernel
from irkit.schedule.model import VDevice

VECTOR_BYTES = 16
"""One 128-bit load."""


def appends_of(op: ROperatorOp) -> list[AppendOp]:
    """Where the module's programs append `op`; none before it is scheduled."""
    module = op.parent_op()
    if not isinstance(module, ModuleOp):
        return []
    listed = _LISTED.get()
    found = listed[1] if listed is not None and listed[0] is module else _appends(module)
    return list(found.get(op.sym_name.data, ()))


@contextmanager
def appends_listed(module: ModuleOp) -> Generator[None]:
    """What `appends_of` finds is looked up once for all rOperators of a module, none of whose schedules is
    written or changed inside."""
    token = _LISTED.set((module, _appends(module)))
    try:
        yield
    finally:
        _LISTED.reset(token)


_Appends = dict[str, list[AppendOp]]
_LISTED: ContextVar[tuple[ModuleOp, _Appends] | None] = ContextVar("appends", default=None)


def _appends(module: ModuleOp) -> _Appends:
    """All appends of a module's programs, by the symbol that they name."""
    programs = (p for p in module.ops if isinstance(p, ProgramOp))
    found: _Appends = {}
    for append in (a for p in programs for a in p.body.block.ops if isinstance(a, AppendOp)):
        found.setdefault(append.callee.string_value(), []).append(append)
    return found


def operands_named(binding: Binding, placeholders: Sequence[str]) -> list[int]:
    """Numbers of the operands that pointer placeholders stand for."""
    names = {binding.names[name] for name in placeholders}
    return [number for number, pointer in enumerate(binding.pointers) if pointer in names]


def can_read_vectors(op: ROperatorOp, rkernel: RKernel, binding: Binding) -> bool:
    """Whether every append places all that the rKernel reads in vectors at multiples of their size."""
    operands = operands_named(binding, rkernel.vectors)
    if rkernel.aligns:
        operands = [*range(len(binding.pointers))]
    operands += [n for n in sorted(binding.wide) if operands and n not in operands]
    return bool(operands) and all(
        _aligned((*append.reads, *append.writes)[i]) for append in appends_of(op) for i in operands
    )


def _aligned(value: SSAValue) -> bool:
    """Whether a buffer or view starts at a multiple of VECTOR_BYTES, for any number of rows.

    Spaces start at one, and so do inputs and outputs, but for those of a program that a composite runs: they
    lie where its runs say, in every iteration.
    """
    at = 0
    while isinstance(value.owner, ViewOp):
        at += value.owner.offset.value.data
        value = value.owner.source
    buffer = value.owner
    assert isinstance(buffer, BufferOp)
    if buffer.offset is not None:
        at += buffer.offset.value.data
    places = _places_of(buffer)
    return at % VECTOR_BYTES == 0 and all(
        number % VECTOR_BYTES == 0 for place in places for number in (place.offset, *place.steps)
    )


def _places_of(buffer: BufferOp) -> list[Place]:
    """Where the runs of a program have one of its inputs, outputs or pairs of state."""
    program, space = buffer.parent_op(), buffer.space.data
    assert isinstance(program, ProgramOp)
    module = program.parent_op()
    if not isinstance(module, ModuleOp) or space not in _SPACES or buffer.port is None:
        return []
    composites = [op for op in module.ops if isinstance(op, CompositeOp)]
    runs = [op for c in composites for op in c.walk() if isinstance(op, RunOp)]
    name = program.sym_name.data
    # Of a space, runs have places in the order of its ports.
    ports = sorted(
        op.port.value.data
        for op in program.body.block.ops
        if isinstance(op, BufferOp) and op.space.data == space and op.port is not None
    )
    groups = [
        run.places()[_SPACES.index(space)] for run in runs if run.program.string_value() == name
    ]
    number = ports.index(buffer.port.value.data)
    # A run without such a place is refused by its proof.
    return [group[number] for group in groups if number < len(group)]


_SPACES = ("input", "output", "state")


def kept_operands(op: ROperatorOp, rkernel: RKernel, binding: Binding) -> list[int]:
    """Operands of which the rKernel expects all in shared memory, if every append keeps them there."""
    operands, appends = operands_named(binding, rkernel.kept), appends_of(op)
    kept = all(set(operands) <= {i for i, _ in a.resident_pairs} for a in appends)
    return operands if appends and kept else []


def streaming(module: ModuleOp, device: VDevice) -> set[str]:
    """rOperators whose rKernels read their operands from global memory alone."""
    target = "cuda" if device.kind == "cuda" else "cpu"
    names = {k.name for k in registry.registered(target) if k.streams}
    ops = [op for op in module.ops if isinstance(op, ROperatorOp)]
    return {op.sym_name.data for op in ops if op.rkernel is not None and op.rkernel.data in names}


def carrying(module: ModuleOp) -> set[str]:
    """rOperators of a GPU whose rKernels read operands and store results wherever these lie."""
    names = {k.name for k in registry.registered("cuda") if k.anywhere}
    ops = [op for op in module.ops if isinstance(op, ROperatorOp)]
    return {op.sym_name.data for op in ops if op.rkernel is not None and op.rkernel.data in names}


def _refuses_carried(op: ROperatorOp, rkernel: RKernel) -> str | None:
    """Why `op` cannot read what its appends carry, or store what others carry from them; None if it can."""
    if rkernel.anywhere:
        return None
    for append in appends_of(op):
        uses = (use for value in append.writes for use in value.uses)
        if ints(append.carried) or any(_carries(use.operation, use.index) for use in uses):
            return f"carried: rKernel '{rkernel.name}' reads and stores in global memory alone"
    return None


def _carries(user: Operation, index: int) -> bool:
    """Whether operand `index` of an op is one that an append carries."""
    if not isinstance(user, AppendOp):
        return False
    return index - len(user.waits) in ints(user.carried)


def refuses_accesses(op: ROperatorOp, rkernel: RKernel, binding: Binding) -> str | None:
    """Why `op` cannot read as `vector_bytes` and `residents` say; None if it can."""
    width = op.vector_bytes.value.data if op.vector_bytes is not None else None
    if width not in (None, VECTOR_BYTES):
        return f"vectors of {width} bytes: there are those of {VECTOR_BYTES}"
    if width is not None and not can_read_vectors(op, rkernel, binding):
        return f"vectors of {width} bytes of what no append places at multiples of that"
    carried = _refuses_carried(op, rkernel)
    if carried is not None:
        return carried
    if rkernel.streams and any(a.resident_pairs for a in appends_of(op)):
        return f"residents: rKernel '{rkernel.name}' reads its operands from global memory alone"
    if op.residents is not None and ints(op.residents) != kept_operands(op, rkernel, binding):
        return (
            f"residents {ints(op.residents)}: not what its rKernel expects and every append keeps"
        )
    return None
