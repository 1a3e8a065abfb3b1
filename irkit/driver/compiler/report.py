"""What a compiled program's report says of its schedule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from xdsl.dialects.builtin import IntegerAttr, ModuleOp

from irkit.dialects.precision import Precision, precision_of
from irkit.dialects.task import CompositeOp, ProgramOp, ROperatorOp
from irkit.dialects.task.program import MEMORY_FIGURES
from irkit.passes.task.composite_text import composite_of, read_composite
from irkit.passes.task.program_text import appends_of, plans_of, programs_of
from irkit.passes.task.vdevices import device_of
from irkit.rkernels.cuda.product_mma import KINDS
from irkit.row_ranges import called
from irkit.runtime.artifact import LEVELS
from irkit.schedule.composite import Repeat, Run, Step, runs_of
from irkit.schedule.model import VDevice

_KINDS = {kind: precision for precision, kind in KINDS.items()}
"""What products are computed in, by the parameter KIND of rKernels on tensor cores."""


def roperator_facts(roperators: Iterable[ROperatorOp]) -> dict[str, dict[str, Any]]:
    """What a report says of each rOperator, by symbol; times of one rTask."""
    return {
        op.sym_name.data: {
            "rkernel": op.rkernel.data if op.rkernel is not None else "",
            "rtasks": op.tasks,
            "cost_ns": op.cost.value.data if op.cost is not None else 0.0,
            **({"costs_ns": op.costs_by_rows} if op.costs_by_rows else {}),
            "cost_from": "measurement" if op.measured_on is not None else "estimate",
            "from": op.sources.data if op.sources is not None else "",
            **_precision_facts(op),
            **_library_facts(op),
        }
        for op in roperators
    }


def _precision_facts(op: ROperatorOp) -> dict[str, Any]:
    """Of contractions that allow less than float32: the precision that is `allowed`, and that which the
    rKernel's `products` are in, float32 where the target has nothing faster."""
    asked = (precision_of(inner) for inner in op.body.walk())
    allowed = next((p for p in asked if not p.strict), None)
    if allowed is None:
        return {}
    kind = op.parameters.data.get("KIND") if op.parameters is not None else None
    found = _KINDS[kind.value.data] if isinstance(kind, IntegerAttr) else Precision.FLOAT32
    return {"allowed": allowed.value, "products": found.value}


def _library_facts(op: ROperatorOp) -> dict[str, Any]:
    """The library that mode `per-op` calls, and how long a launch took by it."""
    if op.library is None:
        return {}
    cost = op.library_cost.value.data if op.library_cost is not None else 0.0
    return {"library": op.library.data, "library_ns": cost}


def figures(module: ModuleOp) -> dict[str, Any]:
    """What the report says of a scheduled module: device, rOperators, times in ns, bytes, proof."""
    roperators = roperator_facts(op for op in module.ops if isinstance(op, ROperatorOp))
    device = device_of(module)
    composite = composite_of(module)
    if composite is not None:
        return {
            **_common(device, roperators),
            **_composite_figures(module, composite),
            "proved": composite.verified.data if composite.verified is not None else "",
        }
    plans = plans_of(module)
    # The one for most rows stands for all where there are several.
    figured = [_plan_figures(program) for program in plans]
    by_rows = [{"rows": called(p.row_range), **f} for p, f in zip(plans, figured, strict=True)]
    return {
        **_common(device, roperators),
        **figured[-1],
        **({"plans": by_rows} if len(plans) > 1 else {}),
        "proved": plans[0].verified.data if plans[0].verified is not None else "",
    }


def _common(device: VDevice, roperators: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "levels": list(LEVELS),
        "wait_ns": device.wait_ns,
        "rates": f"estimated from {device.rates_from}" if device.rates_from else "measured",
        "roperators": roperators,
    }


def _composite_figures(module: ModuleOp, composite: CompositeOp) -> dict[str, Any]:
    """Of what a function of calls runs, each program once; `steps` says which, in which loops."""
    found = read_composite(composite)
    names = {run.program for run in runs_of(found.steps)}
    figured = [_plan_figures(p) for p in programs_of(module) if p.sym_name.data in names]
    largest = ("veus", "row_bytes", "arena_ratio", *MEMORY_FIGURES)
    return {
        **{name: sum(f[name] for f in figured) for name in ("appends", "waves", "waits")},
        **{name: max((f[name] for f in figured), default=0) for name in largest},
        "arena_bytes": found.link_bytes + max((f["arena_bytes"] for f in figured), default=0),
        "modes": [mode.data for mode in composite.modes or ()],
        "steps": _steps(found.steps),
    }


def _steps(steps: Sequence[Step]) -> list[Any]:
    return [
        step.program
        if isinstance(step, Run)
        else {
            "trips": step.trips if isinstance(step, Repeat) else None,
            "steps": _steps(step.steps),
        }
        for step in steps
    ]


def _plan_figures(program: ProgramOp) -> dict[str, Any]:
    appends = list(appends_of(program))
    return {
        "appends": len(appends),
        "veus": max((op.range[1] + 1 for op in appends), default=0),
        "waves": len({op.wave.value.data for op in appends}),
        "waits": sum(len(op.waits) for op in appends),
        "arena_bytes": program.arena_bytes.value.data if program.arena_bytes is not None else 0,
        "row_bytes": program.row_bytes.value.data if program.row_bytes is not None else 0,
        "arena_ratio": program.arena_ratio.value.data if program.arena_ratio is not None else 1.0,
        **program.memory_figures,
        "modes": [mode.data for mode in program.modes or ()],
    }
