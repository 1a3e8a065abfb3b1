"""Print a scheduled program as one self-contained Numba module. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.utils import FastMathFlag
from xdsl.utils.exceptions import PassFailedException

from irkit.dialects.task import ROperatorOp
from irkit.errors import UnsupportedError
from irkit.lower.task_to_numba.program import describe
from irkit.lower.task_to_numba.target_cuda import RESIDENT, SPREAD
from irkit.lower.task_to_numba.targets import TARGETS
from irkit.lower.task_to_numba.walkers_cuda import ranked, shared_by_blocks
from irkit.passes.task.vdevices import device_of
from irkit.rkernels import registry
from irkit.rkernels.bind import bind
from irkit.rkernels.binding.binder import Binding
from irkit.rkernels.legality import root_of
from irkit.rkernels.library_calls import library_call
from irkit.rkernels.rkernel import RKernel, Target
from irkit.rkernels.templates import placeholders, specialise, template_source
from irkit.row_ranges import called
from irkit.schedule.tables import Appended, Mail, Program, Ran, Repeated, TensorMap
from irkit.weights import WeightStore


def emit_module(module: ModuleOp, weights: WeightStore, target: Target | None = None) -> str:
    """The Numba module of a scheduled program, as text.

    Raises UnsupportedError if `target` is not what the program was scheduled for, or if an op has no
    emission; ScheduleError if the schedule was not proved.
    """
    device = device_of(module)
    scheduled: Target = "cuda" if device.kind == "cuda" else "cpu"
    if target is not None and target != scheduled:
        raise UnsupportedError(f"emission for {target}: the program is scheduled for {device.name}")
    program = describe(module, weights)
    # Those of other functions of the module are not of this program.
    roperators = [
        op
        for op in module.ops
        if isinstance(op, ROperatorOp) and op.sym_name.data in program.kernels
    ]
    printer = TARGETS[scheduled]
    sections = [printer.header(program)]
    bindings: list[Binding] = []
    for op in roperators:
        binding, text = print_roperator(op, program, scheduled)
        bindings.append(binding)
        sections.append(text)
    sections.append(printer.dispatch(bindings, program))
    sections.append(printer.walkers(bindings, program, device.arch))
    sections.append(print_program(program))
    return "\n\n".join(s.strip("\n") for s in sections) + "\n"


def print_roperator(op: ROperatorOp, program: Program, target: Target) -> tuple[Binding, str]:
    """Fused functions and specialised rKernel of one rOperator; copies of it for operands that stay, and for
    rTasks that several blocks share."""
    if op.rkernel is None:
        raise PassFailedException(
            f"@{op.sym_name.data} has no rKernel: run partition-rtasks and a scheduling pass first"
        )
    printer, rkernel = TARGETS[target], registry.find(target, op.rkernel.data)
    binding = bind(op, root_of(op), rkernel, program.threads)
    if op.library is not None:
        binding.call = library_call(op, root_of(op), op.library.data)
    template, flags = template_source(rkernel), fastmath_flags(op)
    kernels = [specialise(template, rkernel.function, binding.symbol, binding.names)]
    if binding.resident:
        names = {**binding.names, "RESIDENT": "1"}
        kernels.append(specialise(template, rkernel.function, binding.symbol + RESIDENT, names))
    if binding.spread > 1:
        # Blocks of a cluster are told apart by their ranks alone: each has threads of its own.
        by_threads = "THREAD" in placeholders(rkernel)
        of_blocks = (
            ranked(binding.spread)
            if binding.clustered
            else shared_by_blocks(program.threads, by_threads)
        )
        names = binding.names | of_blocks
        kernels.append(specialise(template, rkernel.function, binding.symbol + SPREAD, names))
    fused = "\n".join(binding.functions).replace("@fused", printer.fused(flags))
    decorator = printer.kernel(flags)
    text = "\n\n".join(f"{decorator}\n{printer.signature(k, binding)}" for k in kernels)
    return binding, f"{_banner(op, rkernel)}\n\n{fused}\n{text}"


def fastmath_flags(op: ROperatorOp) -> list[str]:
    """In what an rOperator's arithmetic may differ, as MLIR and LLVM both name it."""
    return [] if op.fastmath is None else [f.value for f in FastMathFlag if f in op.fastmath.data]


def _banner(op: ROperatorOp, rkernel: RKernel) -> str:
    sources = op.sources.data if op.sources is not None else "unknown"
    lines = [
        f"# ---- rOperator @{op.sym_name.data}: rKernel {rkernel.name}, {op.tasks} rTasks",
        f"# from {sources}",
    ]
    return "\n".join(lines)


def print_program(program: Program) -> str:
    """The schedule table as text that builds a `Program`, and the tables of its other plans."""
    names = "from irkit.schedule.tables import Moving, Ran, Repeated\n\n" if program.steps else ""
    if any(plan.maps for plan in program.plans):
        names += "from irkit.schedule.tables import TensorMap\n\n"
    if any(plan.mail.carried for plan in program.plans):
        names += "from irkit.schedule.tables import Carried, Mail, Published\n\n"
    lines = [f"{names}PROGRAM = Program("]
    for name in _FACTS:
        lines.append(f"    {name}={getattr(program, name)!r},")
    if program.others:
        lines.append(f"    rows={program.rows!r},  # {called(program.rows)}")
    # Programs without state say nothing of it.
    for name in ("inputs", "outputs", "states") if program.states else ("inputs", "outputs"):
        lines += [
            f"    {name}=(",
            *(f"        Port{tuple(p)!r}," for p in getattr(program, name)),
            "    ),",
        ]
    lines += ["    constants=(", *(f"        {c!r}," for c in program.constants), "    ),"]
    lines.append(f"    kernels={program.kernels!r},")
    lines += ["    appends=(", *_append_lines(program.appends, program.kernels), "    ),"]
    if program.steps:
        lines += [
            "    # Appends first to last, moving bases; loops: trips, steps.",
            f"    steps={_steps_text(program.steps)},",
            f"    moving=({''.join(f'Moving{tuple(m)!r}, ' for m in program.moving)}),",
        ]
    lines += [*_mail_lines(program.mail), *_needed_lines(program), *_map_lines(program.maps)]
    lines += [f"    {name}={getattr(program, name)!r}," for name in ("modes", "verified", "tables")]
    lines.append(")")
    if program.others:
        others = [line for plan in program.others for line in _plan_lines(plan, program)]
        lines += ["PLANS = (", "    PROGRAM,", *others, ")"]
    return "\n".join(lines)


def _steps_text(steps: Sequence[Ran | Repeated]) -> str:
    """Steps as text that makes them."""
    found = [
        f"Ran{tuple(step)!r}"
        if isinstance(step, Ran)
        else f"Repeated({step.trips}, {_steps_text(step.steps)})"
        for step in steps
    ]
    # A loop whose turns run nothing has no steps.
    return f"({', '.join(found)}{',' * bool(found)})"


def _plan_lines(plan: Program, first: Program) -> list[str]:
    """What a plan has of its own, and none of what the `first` has of its own."""
    lines = ["    PROGRAM.plan(", f"        rows={plan.rows!r},  # {called(plan.rows)}"]
    lines += [f"        {name}={getattr(plan, name)!r}," for name in _OWN]
    appends = (f"    {line}" for line in _append_lines(plan.appends, plan.kernels))
    maps = _map_lines(plan.maps) or ["    maps=(),"] * bool(first.maps)
    own = (*_mail_lines(plan.mail), *_needed_lines(plan), *maps)
    more = (f"    {line}" for line in own)
    return [*lines, *more, "        appends=(", *appends, "        ),", "    ),"]


def _map_lines(maps: Sequence[TensorMap]) -> list[str]:
    """Tensor maps, if there are any."""
    if not maps:
        return []
    what = "# base, offset, element, sizes, bytes between, sizes of a box"
    return [
        "    maps=(",
        f"        {what}",
        *(f"        TensorMap{tuple(m)!r}," for m in maps),
        "    ),",
    ]


def _needed_lines(program: Program) -> list[str]:
    """Which appends each output hangs on, if not each on all."""
    needed = program.needed
    return [f"    needed={needed!r},  # appends, by output"] if needed else []


def _mail_lines(mail: Mail) -> list[str]:
    """What is carried with its flag, if anything is."""
    if not mail.carried:
        return []
    return [
        "    mail=Mail(",
        "        # append, operand, elements, which pieces its rTasks write",
        f"        ({''.join(f'Published{tuple(p)!r}, ' for p in mail.published)}),",
        "        # append, operand, which of these",
        f"        ({''.join(f'Carried{tuple(c)!r}, ' for c in mail.carried)}),",
        "        # of each rTask: first element, rows, elements of a row, distance of rows",
        f"        {mail.pieces!r},",
        "    ),",
    ]


_OWN = ("shared_bytes", "arena_bytes", "row_bytes", "modes", "tables")
_FACTS = ("device", "veus", "threads", "shared_bytes", "arena_bytes", "row_bytes", "constant_bytes")


def _append_lines(appends: Sequence[Appended], kernels: Sequence[str]) -> list[str]:
    lines = [
        "        # kernel, tasks, first vEU, vEUs, wave, waits, operands (base, offset, per row), pinned"
    ]
    for number, a in enumerate(appends):
        operands = ", ".join(f"Operand{tuple(o)!r}" for o in a.operands)
        pinned = "".join(f"Pinned{tuple(p)!r}, " for p in a.pinned)
        lines.append(
            f"        Appended({a.kernel}, {a.tasks}, {a.first_veu}, {a.veus}, {a.wave}, {a.waits!r}, "
            f"({operands},), ({pinned})),  # {number}: {kernels[a.kernel]}"
        )
    return lines
