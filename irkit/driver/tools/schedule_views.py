"""Write traces and pictures of schedules to files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from irkit.driver.diagnostics.diagnostic import UserError
from irkit.driver.files.model_files import write_text
from irkit.viewing.chrome import chrome_trace
from irkit.viewing.page import schedule_page
from irkit.viewing.svg import schedule_svg
from irkit.viewing.timeline import Timeline, planned

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from irkit.weights import WeightStore

PICTURES = {".svg": schedule_svg, ".html": schedule_page}


def check_picture(path: str) -> None:
    """Raises UserError for a picture of a kind that is not drawn."""
    if Path(path).suffix not in PICTURES:
        raise UserError(f"--schedule-view: expected a file .svg or .html, got '{path}'")


def write_schedule_view(path: str, timelines: list[Timeline], title: str) -> None:
    """Draw timelines one above the other, by the file's ending. Raises UserError."""
    check_picture(path)
    write_text(path, PICTURES[Path(path).suffix](timelines, title))


def write_trace(path: str, timelines: list[Timeline], stages: Mapping[str, float]) -> None:
    """Chrome trace JSON; `stages` are seconds of compilation. Raises UserError."""
    write_text(path, chrome_trace(timelines, stages))


def host_timelines(module: ModuleOp) -> list[Timeline]:
    """What each plan of tasks in a module expects, if it has any. Raises UserError without streams."""
    from irkit.passes.host.program_text import programs_of, read_plan
    from irkit.viewing import host_plans

    found: list[Timeline] = []
    for program in programs_of(module):
        plan = read_plan(program)
        if len(plan.places) != len(plan.tasks):
            name = program.sym_name.data
            raise UserError(
                f"--schedule-view needs streams, 'host.program' @{name} has none: assign-streams gives them"
            )
        found.append(host_plans.planned(plan))
    return found


def planned_timelines(module: ModuleOp, weights: WeightStore) -> list[Timeline]:
    """What a scheduled and proved module plans, for each range of rows that it has a schedule for."""
    from irkit.dialects.task import ROperatorOp
    from irkit.driver.compiler.report import roperator_facts
    from irkit.lower.task_to_numba.program import describe
    from irkit.passes.task.vdevices import device_of

    program = describe(module, weights)
    facts = roperator_facts(op for op in module.ops if isinstance(op, ROperatorOp))
    wait_ns = device_of(module).wait_ns
    return [planned(plan, facts, wait_ns) for plan in program.plans]
