"""A module of collective ops on every rank of a simulated group: its meaning."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import BrokenBarrierError

from xdsl.dialects.builtin import ModuleOp

from irkit.dialects.dist.semantics import MEETING
from irkit.interp.graph import run_graph
from irkit.ranks import SimulatedMember, simulated
from irkit.weights import Array, WeightStore


def run_group(
    module: ModuleOp, weights: WeightStore, inputs: Sequence[Sequence[Array]]
) -> list[list[Array]]:
    """The results of `@main` of a graph-level module on every rank, of the inputs of each.

    Raises as `run_graph`; InvalidInputError too where ranks bring arrays that differ to an op.
    """
    members = simulated(len(inputs))

    def run(member: SimulatedMember) -> list[Array]:
        MEETING.set(member)
        try:
            return run_graph(module, weights, inputs[member.rank])
        except BaseException:
            member.leave()
            raise

    with ThreadPoolExecutor(len(members)) as pool:
        ran = [pool.submit(copy_context().run, run, member) for member in members]
    # The error of the rank that failed first, and not that others waited for it.
    wrong = [e for f in ran if (e := f.exception()) is not None]
    own = [e for e in wrong if not isinstance(e, BrokenBarrierError)]
    for error in own or wrong:
        raise error
    return [f.result() for f in ran]
