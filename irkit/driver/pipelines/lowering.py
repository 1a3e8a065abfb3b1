"""Bring a module to a level by the standard pipeline."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from irkit.context import IrkitContext
from irkit.driver.instruments.reproducer import Reproducer
from irkit.driver.instruments.timer import Timer
from irkit.driver.pipelines.runner import PipelineRunner
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.pipelines.standard import STANDARD, standard_pipeline
from irkit.driver.registry import all_passes
from irkit.errors import UnsupportedError
from irkit.interp import level_of


def run_level(ctx: IrkitContext, module: ModuleOp, level: str, device: str) -> None:
    """Run the standard passes that bring `module` to `level`, verifying after the last."""
    names = [f'{n}{{device="{device}"}}' if n == "partition-rtasks" else n for n in STANDARD[level]]
    for made in build_pipeline(",".join(names), all_passes()):
        try:
            made.apply(ctx, module)
        except PassFailedException as error:
            raise UnsupportedError(f"pass '{made.name}': {error}") from None
    module.verify()


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
        return PipelineRunner(ctx, Timer()).run(module, passes)
    reproducer.start(passes)
    PipelineRunner(ctx, Timer(), [reproducer]).run(module, passes)
