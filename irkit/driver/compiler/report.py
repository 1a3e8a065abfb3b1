"""What a compiled program's report says of its schedule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from irkit.dialects.task import AppendOp, ProgramOp, ROperatorOp
from irkit.passes.task.vdevices import device_of
from irkit.runtime.artifact import LEVELS


def roperator_facts(roperators: Iterable[ROperatorOp]) -> dict[str, dict[str, Any]]:
    """What a report says of each rOperator, by symbol; times of one rTask."""
    return {
        op.sym_name.data: {
            "rkernel": op.rkernel.data if op.rkernel is not None else "",
            "rtasks": op.tasks,
            "cost_ns": op.cost.value.data if op.cost is not None else 0.0,
            "cost_from": "measurement" if op.measured_on is not None else "estimate",
            "from": op.sources.data if op.sources is not None else "",
        }
        for op in roperators
    }


def figures(module: ModuleOp) -> dict[str, Any]:
    roperators = roperator_facts(op for op in module.ops if isinstance(op, ROperatorOp))
    program = next(op for op in module.ops if isinstance(op, ProgramOp))
    appends = [op for op in program.body.block.ops if isinstance(op, AppendOp)]
    device = device_of(module)
    return {
        "levels": list(LEVELS),
        "wait_ns": device.wait_ns,
        "rates": f"estimated from {device.rates_from}" if device.rates_from else "measured",
        "roperators": roperators,
        "appends": len(appends),
        "waves": len({op.wave.value.data for op in appends}),
        "waits": sum(len(op.waits) for op in appends),
        "arena_bytes": program.arena_bytes.value.data if program.arena_bytes is not None else 0,
        "row_bytes": program.row_bytes.value.data if program.row_bytes is not None else 0,
        "arena_ratio": program.arena_ratio.value.data if program.arena_ratio is not None else 1.0,
        "proved": program.verified.data if program.verified is not None else "",
        "modes": [mode.data for mode in program.modes or ()],
    }
