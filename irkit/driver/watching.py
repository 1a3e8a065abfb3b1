"""Which instruments watch a run of irkit-opt: those that its flags ask for, and no other."""

from __future__ import annotations

import argparse
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irkit.context import IrkitContext
from irkit.driver.dumps import Dumper, wants_dumps
from irkit.driver.instruments import Timer
from irkit.driver.running import Instrument


@contextmanager
def watching(
    options: argparse.Namespace,
    stderr: IO[str],
    ctx: IrkitContext,
    module: ModuleOp,
    passes: Sequence[ModulePass],
    part: int,
    timer: Timer,
) -> Generator[list[Instrument]]:
    """The instruments for a run of `passes` on `module`, the input's part number `part` (from 1).

    Each is imported only when asked for; what is written at the end is written if the run succeeds.
    """
    instruments: list[Instrument] = []
    if options.check_semantics:
        from irkit.driver.semantics import SemanticsChecker

        instruments.append(SemanticsChecker(module, ctx.weights, options.seed, timer))
    if wants_dumps(options):
        folder = Path(options.tree_dir) if options.tree_dir else None
        if folder is not None and options.split_input_file:
            folder = folder / f"part-{part:03}"
        instruments.append(Dumper(options, stderr, module, passes, folder))
    page = None
    if options.html is not None:
        from irkit.driver.seeing import PageWriter

        page = PageWriter(module, options.html, f"Passes on {options.input}")
        instruments.append(page)
    yield instruments
    if page is not None:
        page.write()
