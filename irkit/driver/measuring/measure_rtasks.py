"""`measure-rtasks`: the alternatives of each rOperator, timed on the device at hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from irkit.context import IrkitContext, weights_of
from irkit.dialects.constants import constant_array
from irkit.dialects.task import AlternativeAttr, LaunchOp, ROperatorOp
from irkit.dialects.types import DYNAMIC
from irkit.driver.compiler.cache import own_digest, versions
from irkit.driver.compiler.fingerprint import fingerprint
from irkit.driver.device_at_hand import why_elsewhere
from irkit.driver.measuring import times
from irkit.driver.measuring.probes import Probe, Question, constants_of
from irkit.driver.registry import ADDED
from irkit.errors import DeviceError, UnsupportedError
from irkit.passes.task.candidates import by_rows, pareto
from irkit.passes.task.proof import digest
from irkit.passes.task.vdevices import device_of
from irkit.remarks import applied, missed
from irkit.rkernels.legality import root_of
from irkit.rkernels.work import TYPICAL_ROWS
from irkit.runtime.numba_settings import numba_settings
from irkit.runtime.rtask_times import rtask_times
from irkit.schedule.model import VDevice
from irkit.schedule.rates import processor

MEASURED_ROWS = (1, 32, TYPICAL_ROWS)
"""Numbers of rows that an open batch is measured with: one row, tens, thousands."""

MOST_AT_ONCE = 64
"""Launches of one program that is measured."""


@dataclass(frozen=True)
class MeasureRTasks(ModulePass):
    """Time every alternative of every rOperator on the device at hand, and offer those that are fastest.

    Of a batch that is open, 1, 32 and 1024 rows are timed. A time is measured once: it is kept in the
    user's cache, under a digest of the rOperator, the alternative, the machine, and the versions of irkit and
    of what compiles. Alternatives then say on what machine their cost was measured, as does the rOperator
    that one is chosen for; those that are the fastest on no number of vEUs are offered no more. Where the
    device is not at hand, all stays as it was estimated. Meant to follow `partition-rtasks{candidates=10}`.
    Changes no body.

    ```mlir
    task.roperator @gemm_0(%x, %w) attributes {alternatives = [
        #task.alternative<{rkernel = "gemm.strip", cost = 900.0 : f64, ...}>,
        #task.alternative<{rkernel = "product.blocked", cost = 990.0 : f64, ...}>]} {...}
    ```
    becomes
    ```mlir
    task.roperator @gemm_0(%x, %w) attributes {alternatives = [
        #task.alternative<{rkernel = "product.blocked", cost = 410.0 : f64, measured_on = "...", ...}>]} {...}
    ```
    """

    name = "measure-rtasks"
    requires: ClassVar[tuple[str, ...]] = ("partitioned",)
    produces: ClassVar[str] = "partitioned"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        device = device_of(op)
        reason = why_elsewhere(device)
        if reason is not None:
            missed(op, "MeasureRTasks", "{}", reason)
            return
        weights_of(ctx)
        assert isinstance(ctx, IrkitContext)
        try:
            Measurement(ctx, op, device).run()
        except DeviceError as error:
            raise PassFailedException(str(error)) from None


class Measurement:
    """Measures what a module offers, as far as that is not known."""

    def __init__(self, ctx: IrkitContext, module: ModuleOp, device: VDevice) -> None:
        self.ctx, self.device = ctx, device
        self.roperators = [
            op for op in module.ops if isinstance(op, ROperatorOp) and op.alternatives is not None
        ]
        self._launches: dict[str, LaunchOp] = {}
        for op in module.walk():
            if isinstance(op, LaunchOp):
                self._launches.setdefault(op.callee.string_value(), op)
        self._name = _machine(device)
        self._here = _surroundings(device)
        self._times: dict[str, float] = {}
        self.reasons: dict[str, str] = {}

    def run(self) -> None:
        """Find every time, and write into each rOperator's alternatives what was found."""
        asked = {op: list(self._questions(op)) for op in self.roperators}
        self._answer([question for found in asked.values() for question in found])
        for op, questions in asked.items():
            self._offer(op, questions)

    def _questions(self, op: ROperatorOp) -> Iterator[Question]:
        """One an alternative; none about what is not launched, or is measured."""
        launch = self._launches.get(op.sym_name.data)
        assert op.alternatives is not None
        if launch is None or all(a.is_measured for a in op.alternatives):
            return
        values = self._values(launch)
        for alternative in op.alternatives:
            for rows in MEASURED_ROWS if alternative.costs else (TYPICAL_ROWS,):
                key = self._key(op, alternative, values, rows)
                yield Question(op, launch, alternative, key, rows)

    def _key(
        self, op: ROperatorOp, alternative: AlternativeAttr, values: list[str], rows: int
    ) -> str:
        copy = op.clone()
        copy.sym_name = StringAttr("probe")
        copy.choose(alternative)
        for name in ("sources", "cost", "measured_on", "batches", "costs"):
            copy.properties.pop(name, None)
        return times.time_key(digest(ModuleOp([copy])), values, self._here, rows)

    def _values(self, launch: LaunchOp) -> list[str]:
        """Digests of constants of integers: those steer loops and places; what a float is takes no time."""
        arrays = [constant_array(op.result, self.ctx.weights) for op in constants_of(launch)]
        return [fingerprint(a) for a in arrays if a is not None and np.dtype(a.dtype).kind in "iub"]

    def _answer(self, questions: Sequence[Question]) -> None:
        """Know the times of all questions, from the cache or by measuring; equal ones are one."""
        open_questions: dict[str, Question] = {}
        for question in questions:
            known = times.kept(question.key)
            if known is not None:
                self._times[question.key] = known
            else:
                open_questions.setdefault(question.key, question)
        for rows in sorted({question.rows for question in open_questions.values()}):
            for part in _parts([q for q in open_questions.values() if q.rows == rows]):
                self._measure(part)
        if open_questions:
            times.prune()

    def _measure(self, questions: Sequence[Question]) -> None:
        probe = Probe(questions, self.device)
        try:
            found = rtask_times(probe.artifact(self.ctx), questions[0].rows)
        except UnsupportedError as error:
            self._measure_apart(questions, error)
            return
        for symbol, ns in found.items():
            question = probe.symbols[symbol]
            # A clock may be too coarse for what takes no time at all.
            self._times[question.key] = max(ns, 1.0)
            said = f"@{question.op.sym_name.data} by {question.alternative} on {self._name}"
            said += f", {question.rows} rows" if question.alternative.costs else ""
            times.keep(question.key, self._times[question.key], said)

    def _measure_apart(self, questions: Sequence[Question], error: UnsupportedError) -> None:
        """One of them cannot be measured: the others can."""
        if len(questions) == 1:
            self.reasons[questions[0].key] = str(error)
            return
        for question in questions:
            self._measure([question])

    def _offer(self, op: ROperatorOp, questions: Sequence[Question]) -> None:
        """Offer what was measured, the fastest alone first; an rOperator of which nothing was stays."""
        for question in questions:
            if question.key in self.reasons:
                name = question.alternative.rkernel
                missed(op, "MeasureRTasks", "{}: {}", name, self.reasons[question.key])
        asked: dict[AlternativeAttr, dict[int, float]] = {}
        for question in questions:
            if question.key in self._times:
                of_one = asked.setdefault(question.alternative, {})
                of_one[question.rows] = self._times[question.key]
        found = {a: by_size for a, by_size in asked.items() if TYPICAL_ROWS in by_size}
        if not found:
            return
        numbers = self._best(op, found)
        measured = [
            a.taking(by_size[TYPICAL_ROWS], self._name, by_size if a.costs else None)
            for a, by_size in found.items()
        ]
        op.alternatives = ArrayAttr([measured[n] for n in numbers])
        first = numbers[0]
        best = measured[first]
        text = "{} of {} alternatives stay; the fastest alone is {} in a grid of {}, {:.0f} ns an rTask"
        applied(
            op, "MeasureRTasks", text + ", estimated at {:.0f} ns", len(numbers), len(found),
            best.rkernel, list(best.grid), best.cost_ns, list(found)[first].cost_ns,
        )  # fmt: skip

    def _best(
        self, op: ROperatorOp, found: Mapping[AlternativeAttr, Mapping[int, float]]
    ) -> list[int]:
        """Numbers of the alternatives that stay, by what they take."""
        costs = [by_size[TYPICAL_ROWS] for by_size in found.values()]
        if root_of(op).parallel[:1] != (DYNAMIC,):
            return pareto([a.tasks for a in found], costs, self.device)
        # A batch is one share a vEU, by one rKernel for each range of rows.
        sizes = set[int].intersection(*(set(by_size) for by_size in found.values()))
        return by_rows([[by_size[n] for n in sorted(sizes)] for by_size in found.values()])


def _parts(questions: Sequence[Question]) -> Iterator[list[Question]]:
    """Questions in programs of MOST_AT_ONCE launches or few more, those about one rOperator together."""
    part: list[Question] = []
    for _, of_one in groupby(questions, key=lambda q: id(q.op)):
        part += of_one
        if len(part) >= MOST_AT_ONCE:
            yield part
            part = []
    if part:
        yield part


def _machine(device: VDevice) -> str:
    """What the machine at hand calls itself."""
    if device.kind == "cuda":
        from irkit.runtime.cuda.driver import device as gpu

        return gpu().name
    return processor()


def _surroundings(device: VDevice) -> tuple[object, ...]:
    """What a time hangs on beside what runs: the machine, and the versions of all that makes its code."""
    added = fingerprint(list(ADDED.items()))
    common = _machine(device), versions(), own_digest().hex(), added, device.kind, device.threads
    if device.kind == "cuda":
        from irkit.runtime.cuda.driver import call

        driver = call("cuDriverGetVersion")
        return *common, device.arch, device.multiprocessors, driver, numba_settings()
    from irkit.runtime.machine_code import context

    return *common, context()
