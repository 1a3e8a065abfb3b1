"""Same-level rewrites and lowerings, by name. Each line imports its pass only when it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.passes import ModulePass


def _lazy(module: str, attribute: str) -> Callable[[], type[ModulePass]]:
    return lambda: getattr(importlib.import_module(f"irkit.{module}"), attribute)


PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    # graph level
    # tensor level
    # task level
    "form-roperators": _lazy("passes.task.form_roperators", "FormROperators"),
    "partition-rtasks": _lazy("passes.task.partition_rtasks", "PartitionRTasks"),
    "pin-residents": _lazy("passes.task.pin_residents", "PinResidents"),
    "plan-memory": _lazy("passes.task.plan_memory", "PlanMemory"),
    "schedule-wavefront": _lazy("passes.task.schedule_wavefront", "ScheduleWavefront"),
    "verify-schedule": _lazy("passes.task.verify_schedule", "VerifySchedule"),
    # between levels
}
