"""Write traces and pictures of schedules to files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from irkit.driver.diagnostics import UserError
from irkit.driver.inputs import write_text
from irkit.driver.instruments import module_text
from irkit.viewing.chrome import chrome_trace
from irkit.viewing.page import schedule_page
from irkit.viewing.passes import PassesPage
from irkit.viewing.svg import schedule_svg
from irkit.viewing.timeline import Timeline, planned

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

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


def planned_timeline(module: ModuleOp, weights: WeightStore) -> Timeline:
    """What a scheduled and proved module plans."""
    from irkit.dialects.task import ROperatorOp
    from irkit.driver.compile import roperator_facts
    from irkit.lower.task_to_numba.program import describe
    from irkit.passes.task.plain import device_of

    program = describe(module, weights)
    facts = roperator_facts(op for op in module.ops if isinstance(op, ROperatorOp))
    costs = [float(str(facts[k]["cost_ns"])) for k in program.kernels]
    return planned(program, facts, costs, device_of(module).wait_ns)


class PageWriter:
    """The instrument behind `--html`: writes the page at the end, or when a pass fails."""

    def __init__(self, module: ModuleOp, path: str, title: str) -> None:
        self._path, self._page = path, PassesPage(title)
        self._page.start(module_text(module))

    def before(self, module: ModuleOp, module_pass: ModulePass) -> None:
        """The text before is the one after the pass before."""

    def after(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """Adds a step."""
        self._page.add(
            str(module_pass.pipeline_pass_spec(include_default=True)), seconds, module_text(module)
        )

    def failed(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """Adds the step that failed, and writes what there is."""
        spec = str(module_pass.pipeline_pass_spec(include_default=True))
        self._page.add(spec, seconds, module_text(module, generic=True), "this pass failed")
        self.write()

    def write(self) -> None:
        """Write the page. Raises UserError."""
        write_text(self._path, self._page.html())
