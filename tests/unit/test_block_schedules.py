"""Schedules of loops in a GPU's blocks: those of the rule and others are run by an emulated block and equal
what is computed without; they become machine code for every architecture; what may not be is refused."""

from __future__ import annotations

import functools
import time
from types import SimpleNamespace
from typing import Any

import cuda_emulator
import numpy as np
import pytest
from family_programs import choose_first
from test_loop_schedules import CASES, TYPES, arrays, module
from xdsl.dialects.builtin import IntegerAttr, i64

import irkit
from irkit.context import IrkitContext
from irkit.dialects.loop import ScheduleAttr
from irkit.dialects.task import ROperatorOp
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.expressions.steps import schedule_of
from irkit.expressions.syntax import ExpressionError
from irkit.interp.task import evaluate_body
from irkit.passes.task.candidates import Candidate
from irkit.passes.task.partition_rtasks import Partition
from irkit.rkernels import registry
from irkit.rkernels.bind import bind
from irkit.rkernels.legality import root_of, why_illegal
from irkit.rkernels.scheduled import block_text
from irkit.rkernels.scheduled.block_layout import THREADS, BlockLayout
from irkit.rkernels.scheduled.block_rules import default_block_schedules
from irkit.rkernels.templates import specialise, template_source
from irkit.schedule.devices import device as find_device
from irkit.weights import WeightStore

MORE: dict[str, tuple[str, tuple[tuple[int, ...], ...]]] = {
    "wide": ("C(m, n) +=! A(m, k) * B(k, n)", ((40, 24), (24, 36))),
    "both turned": ("C(m, n) +=! A(k, m) * B(n, k)", ((30, 33), (28, 30))),
    "images": (
        "O(b, o, y, x) +=! I(b, c, y + r, x + s) * W(o, c, r, s)",
        ((2, 3, 5, 6), (9, 3, 3, 3)),
    ),
    "little": ("C(m, n) +=! A(m, k) * B(k, n)", ((8, 10), (10, 9))),
    "even": ("C(m, n) +=! A(m, k) * B(k, n)", ((16, 24), (24, 32))),
    "rows": ("S(m) +=! X(m, k)", ((10, 300),)),
    "batch": ("C(b, n, m) +=! A(b, m, k) * B(b, k, n)", ((2, 24, 17), (2, 17, 20))),
}
ALL = {**CASES, **MORE}
MORE["large"] = ("C(m, n) +=! A(m, k) * B(k, n)", ((128, 1024), (1024, 512)))


@functools.cache
def parsed(case: str, kind: str) -> tuple[Any, ROperatorOp]:
    """A module, and its rOperator that reduces."""
    CASES.update(MORE)
    try:
        text = module(case, kind)
    finally:
        for name in MORE:
            del CASES[name]
    read, ctx = irkit.parse(text), IrkitContext()
    register_dialects(ctx)
    for level in ("task",) if case == "added" else ("graph", "tensor", "task"):
        run_level(ctx, read, level, "cpu2")
    choose_first(read)
    (found,) = [op for op in read.ops if isinstance(op, ROperatorOp) and root_of(op).reduction]
    return read, found


def choose(op: ROperatorOp, schedule: ScheduleAttr) -> BlockLayout:
    """The rOperator is run by a schedule in blocks from now on."""
    rkernel, root = registry.find("cuda", "generated.nest"), root_of(op)
    layout = BlockLayout.of(root, schedule)
    op.choose(Candidate(rkernel, tuple(layout.nest.grid), 1.0, schedule=schedule).alternative(root))
    return layout


def emulated(op: ROperatorOp, given: list[np.ndarray], like: np.ndarray) -> np.ndarray:
    """What a block computes, rTask by rTask."""
    rkernel = registry.find("cuda", "generated.nest")
    binding = bind(op, root_of(op), rkernel, THREADS)
    own = specialise(template_source(rkernel), rkernel.function, "kernel", binding.names)
    text = "\n".join([*binding.functions, "@fused", own])
    result = np.full_like(like, -99)
    room = max(op.scratch_bytes, 16)
    cuda_emulator.run_text(text, "kernel", [*given, result], op.tasks, 1, THREADS, room)
    return result


def compare(case: str, kind: str, schedule: ScheduleAttr, fours: bool = False) -> BlockLayout:
    """The nest's meaning and the emulated block are what the statement is."""
    _, op = parsed(case, kind)
    given = arrays(op, np.random.default_rng(len(case)))
    op.schedule = None
    (want,) = evaluate_body(op, given, WeightStore())
    layout = choose(op, schedule)
    assert why_illegal(op, find_device("h200")) is None, schedule
    (meant,) = evaluate_body(op, given, WeightStore())
    np.testing.assert_array_equal(meant, want, err_msg=str(schedule))
    if fours:
        op.vector_bytes = IntegerAttr(16, i64)
    try:
        np.testing.assert_array_equal(emulated(op, given, want), want, err_msg=str(schedule))
    finally:
        op.vector_bytes = None
    return layout


def steps(text: str) -> ScheduleAttr:
    return ScheduleAttr.of(schedule_of(text))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("case", ALL)
def test_the_rules_schedules_change_no_number(case: str, kind: str) -> None:
    _, op = parsed(case, kind)
    offered = default_block_schedules(root_of(op), 3, find_device("h200"))
    assert offered
    compare(case, kind, offered[0])


HEAD = "for m, n, k of A, B; "
WRITTEN = {
    "nothing bound": "",
    "threads of results": "bind n to thread",
    "threads of terms": "split k by 8 as ko, kt; bind kt to thread; split n by 5 as no, nt; "
    "bind nt to thread; reorder m, no, ko, nt, kt",
    "terms copied": "split k by 8 as ko, kt; bind kt to thread; split m by 4 as mo, mt; bind mt to thread; "
    "reorder mo, n, ko, kt, mt; cache A at ko in 3; cache B at ko in 3",
    "terms outside": "split k by 6 as kt, ki; split n by 4 as no, nt; bind kt to thread; bind nt to thread; "
    "reorder m, no, kt, ki, nt",
    "copied once": "cache A; split n by 4 as no, nt; bind nt to thread; cache B at no; reorder m, no, nt, k",
    "written out": "split m by 2 as mo, mi; split n by 4 as no, ni; bind no to thread; "
    "reorder mo, no, k, mi, ni; unroll mi; vectorize ni; cache B at k",
    "one buffer": "split m by 8 as mo, mb; split mb by 4 as mt, mi; split n by 8 as no, nb; "
    "split nb by 4 as nt, ni; split k by 7 as ko, kb; reorder mo, no, ko, kb, mt, nt, mi, ni; "
    "bind mt to thread; bind nt to thread; unroll mi; unroll ni; cache A at ko; cache B at ko",
    "shared out": "bind m to veu in 3; bind n to veu in 2; split n by 4 as no, nt; bind nt to thread; "
    "reorder m, no, nt, k; cache B at no",
}


@pytest.mark.parametrize("name", WRITTEN)
def test_written_schedules_change_no_number(name: str) -> None:
    layout = compare("little", "f32", steps(HEAD + WRITTEN[name]))
    assert (layout.tile is not None) == (name == "one buffer")


def test_tiles_are_copied_four_elements_at_a_time() -> None:
    _, op = parsed("even", "f32")
    for schedule in default_block_schedules(root_of(op), 2, find_device("h200"))[:1]:
        layout = compare("even", "f32", schedule, fours=True)
        assert [layout.in_fours(layout.shared[n]) for n in (0, 1)] == [False, True]
        assert layout.tile is not None


def test_a_block_that_waits_for_no_copy_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken once: the comparison above can fail."""
    _, op = parsed("wide", "f32")
    schedule = default_block_schedules(root_of(op), 2, find_device("h200"))[0]
    original = block_text.BlockPrinter.line

    def without(self: Any, text: str) -> None:
        original(self, "pass" if text.startswith("await_copies") else text)

    monkeypatch.setattr(block_text.BlockPrinter, "line", without)
    with pytest.raises(AssertionError):
        compare("wide", "f32", schedule)


REFUSED = [
    (
        "split n by 32; split m by 16; bind mi to thread; bind ni to thread",
        "512 threads, of 256",
    ),
    ("bind q to thread", "'bind' of 'q', which is no loop here"),
    ("bind m to veu in 3; bind m to thread", "threads of 'm', which has 13 to 14 turns: split it"),
    ("cache A at k in 9", "9 buffers of 'A': expected 1 to 8"),
    ("cache A in 2", "2 buffers of 'A', which is copied once"),
    ("cache A at k in 0", "0 buffers of 'A'"),
    ("cache A at k in 2; cache B at k", "'A' in 2 buffers and 'B' in 1, both at 'k'"),
    (
        "split k by 7 as kt, ki; bind kt to thread; cache A at ki",
        "'cache' of 'A' in turns of which some threads of 'kt' have fewer",
    ),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_refused_where_it_is_written(text: str, message: str) -> None:
    _, op = parsed("wide", "f32")
    with pytest.raises(ExpressionError) as refused:
        BlockLayout.of(root_of(op), steps(HEAD + text))
    assert message in str(refused.value)


def test_more_shared_memory_than_there_is_is_refused() -> None:
    text = "C(m, n) +=! A(m, k) * B(k, n)"
    given = f'{{text = "{text}", schedule = #loop.schedule<"for m, n, k of A, B; cache A">}}'
    a, b, c = (f"tensor<{shape}xf32>" for shape in ("8x65536", "65536x8", "8x8"))
    read = irkit.parse(
        f"func.func @main(%a: {a}, %b: {b}) -> {c} {{\n"
        f"  %y = graph.expression %a, %b {given} : ({a}, {b}) -> {c}\n"
        f"  func.return %y : {c}\n}}\n"
    )
    with pytest.raises(irkit.errors.UnsupportedError, match="bytes of scratch, h200 has"):
        irkit.compile(read, target="cuda", device="h200")


def test_a_nest_is_offered_beside_templates_where_they_are_measured() -> None:
    read, op = parsed("large", "f32")
    offered = Partition(read, find_device("h200"), 12).alternatives(op)
    assert {"generated.nest"} < {a.rkernel for a in offered}


def test_the_rule_takes_no_time() -> None:
    text = "C(m, n) +=! A(m, k) * B(k, n)"
    shapes = ((65536, 1024), (1024, 4096))
    given = f'{{text = "{text}", schedule = #loop.schedule<"for m, n, k of A, B; rule">}}'
    types = [f"tensor<{a}x{b}xf32>" for a, b in (*shapes, (65536, 4096))]
    read, ctx = (
        irkit.parse(
            f"func.func @main(%a: {types[0]}, %b: {types[1]}) -> {types[2]} {{\n"
            f"  %y = graph.expression %a, %b {given} : ({types[0]}, {types[1]}) -> {types[2]}\n"
            f"  func.return %y : {types[2]}\n}}\n"
        ),
        IrkitContext(),
    )
    register_dialects(ctx)
    for level in ("graph", "tensor", "task"):
        run_level(ctx, read, level, "h200")
    (op,) = [o for o in read.ops if isinstance(o, ROperatorOp)]
    partition, start = Partition(read, find_device("h200")), time.process_time()
    offered = partition.alternatives(op)
    assert time.process_time() - start < 0.5
    assert {a.rkernel for a in offered} == {"generated.nest"}


@pytest.mark.parametrize(
    ("case", "kind"), [("even", "f32"), ("images", "f32"), ("wide", "f64"), ("rows", "f32")]
)
def test_machine_code_for_each_architecture(case: str, kind: str) -> None:
    pytest.importorskip("numba_cuda")
    from test_cuda_architectures import BUILT, LAYOUT, check, translated

    from irkit.lower.task_to_numba import dispatch_cuda, header_cuda, walkers_cuda
    from irkit.lower.task_to_numba.emit import print_roperator

    _, op = parsed(case, kind)
    choose(op, default_block_schedules(root_of(op), 3, find_device("h200"))[0])
    op.vector_bytes = IntegerAttr(16, i64) if case == "even" else None
    try:
        threads: Any = SimpleNamespace(threads=THREADS)
        binding, text = print_roperator(op, threads, "cuda")
    finally:
        op.vector_bytes = None
    kernel = dispatch_cuda.Kernel(
        binding.symbol, binding.pointer_types, binding.scratch_bytes, binding.batch
    )
    walkers = [dispatch_cuda.run_task([kernel]), walkers_cuda.walkers(LAYOUT)]
    parts = [header_cuda.IMPORTS, text, *walkers, walkers_cuda.op_kernel(0, kernel)]
    found = translated("\n\n".join(parts), ["op_0"])
    for arch in BUILT:
        made = check(found, arch)
        resources = made.resources()["op_0"]
        assert resources["spill_stores"] == resources["spill_loads"] == 0, arch
        if case != "rows":
            assert "cp.async" in made.ptx
