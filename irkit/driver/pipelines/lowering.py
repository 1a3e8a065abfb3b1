"""Bring a module to a level by the standard pipeline."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp

from irkit.context import IrkitContext
from irkit.driver.diagnostics.library_errors import library_errors
from irkit.driver.instruments.instrument import Instrument
from irkit.driver.instruments.reproducer import Reproducer
from irkit.driver.pipelines.runner import PipelineRunner, Verify
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.pipelines.standard import WAVEFRONT, level_pipeline, standard_pipeline
from irkit.driver.registry import all_passes
from irkit.interp import level_of


def run_level(
    ctx: IrkitContext,
    module: ModuleOp,
    level: str,
    device: str,
    *,
    policy: str = WAVEFRONT,
    measure: bool = False,
    recompute: str = "",
    instruments: Sequence[Instrument] = (),
) -> None:
    """Run the standard passes that bring `module`, in place, from the level before to `level`.

    What every tool does, but for the verifier, which runs after the last pass only: after each it would
    double the time. Raises UnsupportedError where a pass gives up, InternalError where one leaves wrong IR,
    and what passes raise of `irkit.errors`.
    """
    with library_errors():
        text = level_pipeline(level, device, policy, measure, recompute)
        passes = build_pipeline(text, all_passes())
        PipelineRunner(ctx, instruments=instruments, verify=Verify.LEVELS).run(module, passes)


def bring_to_level(
    ctx: IrkitContext,
    module: ModuleOp,
    level: str,
    device: str | None = None,
    reproducer: Reproducer | None = None,
) -> None:
    """Run the standard pipeline on `module`, in place, up to `level`; none if it is there already.

    `reproducer` follows it.

    Raises UserError if a pass fails or `level` is behind.
    """
    start = level_of(module)
    if start == level:
        return
    passes = build_pipeline(standard_pipeline(start, level, device), all_passes())
    if reproducer is None:
        return PipelineRunner(ctx).run(module, passes)
    reproducer.start(passes)
    PipelineRunner(ctx, instruments=[reproducer]).run(module, passes)
