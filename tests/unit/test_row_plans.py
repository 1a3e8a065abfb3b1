"""Programs with plans for ranges of rows: planned, proved, run, saved; and refused where they are wrong."""

from __future__ import annotations

import gc
import re
from dataclasses import replace
from functools import cache
from itertools import pairwise

import fake_cuda
import numpy as np
import pytest
from mlps import ACTIVATIONS, Mlp
from schedule_toys import split, whole
from xdsl.parser import Parser
from xdsl.utils.exceptions import PassFailedException

import irkit
from irkit.context import IrkitContext
from irkit.dialects.task import AlternativeAttr
from irkit.driver.compiler.models import read_model
from irkit.driver.diagnostics.diagnostic import UserError
from irkit.driver.files.parsing import parse_module
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.driver.verification.verifier import check_module
from irkit.errors import ArtifactError
from irkit.interp import run_module
from irkit.lower.task_to_numba.emit import emit_module
from irkit.passes.task.program_text import plans_of
from irkit.passes.task.verify_schedule import VerifySchedule
from irkit.row_ranges import ALL_ROWS, NO_END, Others, called, cost_at, why_not_all
from irkit.runtime.artifact import Artifact
from irkit.runtime.cuda import driver, executor, streams
from irkit.runtime.cuda.extent import extent_probe
from irkit.runtime.cuda.facts import read_facts
from irkit.runtime.variant import Variant
from irkit.schedule.devices import device
from irkit.schedule.makespan import makespan
from irkit.schedule.model import Access, Append, Buffer, Launch, Option, Schedule
from irkit.schedule.row_plans import AS_GOOD, plans_by_rows

MODES = ("serial", "per-op", "per-wave", "persistent", "auto")


def scheduled(model: Mlp, name: str, policy: str = "wavefront"):
    """Its module, scheduled for a device."""
    imported = read_model(model.model(), "float32")
    ctx = IrkitContext(weights=imported.weights)
    register_dialects(ctx)
    for level in ("graph", "tensor", "task", "schedule"):
        run_level(ctx, imported.module, level, name, policy=policy)
    return ctx, imported.module


@cache
def proved() -> tuple[IrkitContext, str]:
    """A module with several plans, as text."""
    ctx, module = scheduled(Mlp((64, 128, 128, 10)), "cpu2")
    assert len(plans_of(module)) > 1
    return ctx, str(module)


def near(borders: list[tuple[int, int]]) -> list[int]:
    """Numbers of rows at the borders of ranges and beside them."""
    ends = {n for rows in borders for n in rows if n != NO_END}
    return sorted({n for end in ends for n in (end - 1, end, end + 1) if n > 0} | {1, 33})


def agree(got: np.ndarray, model: Mlp, x: np.ndarray) -> None:
    assert got.shape == (len(x), model.sizes[-1])
    np.testing.assert_allclose(got, model(x), rtol=2e-4, atol=2e-4)


# Ranges


@pytest.mark.parametrize(
    ("ranges", "words"),
    [
        ([ALL_ROWS], None),
        ([(0, 4), (5, 5), (6, NO_END)], None),
        ([(1, NO_END)], "rows 1 and more come where those from 0 on are next"),
        ([(0, 4), (4, NO_END)], "rows 4 and more come where those from 5 on are next"),
        ([(0, 4), (6, NO_END)], "rows 6 and more come where those from 5 on are next"),
        ([(0, 4), (5, 9)], "none is for 10 rows"),
        ([(0, NO_END), (5, 9)], "rows 5 to 9 come behind a range without an end"),
        ([], "none is for 0 rows"),
    ],
)
def test_ranges_are_for_every_number_once(ranges, words) -> None:
    assert why_not_all(ranges) == words


def test_a_range_is_found_by_rows() -> None:
    ranges = [(0, 4), (5, 5), (6, 99), (100, NO_END)]
    others = Others(ranges, [1, 2, 3])
    for rows in range(200):
        (wanted,) = [
            n for n, (a, b) in enumerate(ranges) if a <= rows and (b == NO_END or rows <= b)
        ]
        assert others.of(rows, 0) == wanted
    assert Others[int]().of(7, 0) == 0
    assert (called((0, NO_END)), called((5, NO_END)), called((0, 4))) == (
        "any rows",
        "rows 5 and more",
        "rows 0 to 4",
    )


def test_costs_lie_on_lines_between_those_that_are_known() -> None:
    costs = {1: 10.0, 5: 50.0, 10: 60.0}
    found = [cost_at(costs, rows, 7.0) for rows in (0, 1, 2, 5, 6, 10, 20)]
    assert found == [10.0, 10.0, 20.0, 50.0, 52.0, 60.0, 120.0]
    assert cost_at({}, 3, 7.0) == 7.0


@pytest.mark.parametrize("ns", [1.0, 12345678.0, 1e9 + 1, 17870.959999999999, 2.0**53, 1e-3])
def test_costs_are_read_as_they_are_printed(ns: float) -> None:
    made = AlternativeAttr.of("map.rows", (4,), 1.0, {}, costs={1: 1.0, 1024: ns})
    again = Parser(proved()[0], str(made)).parse_attribute()
    assert again == made
    assert again.costs[1024] == pytest.approx(ns, rel=1e-5)


@pytest.mark.parametrize("name", ["cpu2", "test4", "h200"])
def test_schedules_are_read_as_they_are_printed(name: str) -> None:
    ctx, module = scheduled(Mlp((24, 40, 8)), name)
    again = parse_module(ctx, str(module), "printed.mlir")
    check_module(again)
    assert str(again) == str(module)


# Planning


def toys(*costs: dict[int, float], launches: int = 2) -> tuple[list[Buffer], list[Launch]]:
    """A chain of launches with one option for each of `costs`."""
    buffers = [Buffer("b0", "input", (-1, 4), 4, port=0)]
    made: list[Launch] = []
    for n in range(launches):
        space = "output" if n == launches - 1 else "rows"
        buffers.append(Buffer(f"b{n + 1}", space, (-1, 4), 4, port=0))
        boxes = split((4, 4), 4, 0)
        options = tuple(
            Option(4, cost[max(cost)], 0, lambda boxes=boxes: [boxes, boxes], f"k{k}", cost)
            for k, cost in enumerate(costs)
        )
        reads, writes = (Access(n, boxes),), (Access(n + 1, boxes),)
        one = whole((1, 4), 1)
        made.append(
            Launch(f"l{n}", "s", 4, reads, writes, options[0].cost_ns, options=options,
                   whole=lambda one=one: [one, one])
        )  # fmt: skip
    return buffers, made


def placed(buffers: list[Buffer], launches: list[Launch]) -> Schedule:
    """The cheapest option of each, on all vEUs."""
    best = [min(range(len(n.options)), key=lambda k, n=n: n.options[k].cost_ns) for n in launches]
    made = [launch.choose(option) for launch, option in zip(launches, best, strict=True)]
    return Schedule(device("test4"), buffers, made, [Append(n, 0, 4) for n in range(len(made))])


def plans(*costs: dict[int, float]):
    buffers, launches = toys(*costs)
    asked: list[int] = []

    def place(given, rows: int) -> Schedule:
        asked.append(1)
        made = placed(buffers, given)
        chosen = [g.choose(m.option) for g, m in zip(launches, made.launches, strict=True)]
        return replace(made, launches=chosen)

    return plans_by_rows(launches, place), len(asked)


def test_one_plan_where_one_is_nearly_as_good_everywhere() -> None:
    found, asked = plans({1: 100.0, 32: 105.0, 1024: 900.0}, {1: 95.0, 32: 110.0, 1024: 990.0})
    assert [rows for rows, _ in found] == [ALL_ROWS]
    assert asked == 3


def test_one_plan_and_one_question_where_no_cost_hangs_on_rows() -> None:
    buffers, launches = toys({1: 1.0})
    plain = [replace(n, options=tuple(replace(o, costs={}) for o in n.options)) for n in launches]
    found = plans_by_rows(plain, lambda given, rows: placed(buffers, list(given)))
    assert [rows for rows, _ in found] == [ALL_ROWS]


def test_the_border_is_where_the_next_is_no_slower() -> None:
    few, many = {1: 10.0, 32: 320.0, 1024: 10240.0}, {1: 100.0, 32: 131.0, 1024: 1123.0}
    found, _ = plans(few, many)
    (first, small), (second, large) = found
    border = second[0]
    assert first == (0, border - 1)
    assert second == (border, NO_END)
    assert makespan(large, border) <= makespan(small, border)
    assert makespan(large, border - 1) > makespan(small, border - 1)


@pytest.mark.parametrize("seed", range(30))
def test_every_size_that_was_priced_is_served_about_as_well_as_can_be(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = (1, 32, 1024, 65536)
    costs = [
        dict(zip(sizes, np.sort(rng.random(4) * 10.0 ** rng.integers(0, 4)).tolist(), strict=True))
        for _ in range(rng.integers(1, 5))
    ]
    found, _ = plans(*costs)
    assert why_not_all([rows for rows, _ in found]) is None
    ranges = [rows for rows, _ in found]
    schedules = Others(ranges, [schedule for _, schedule in found[1:]])
    for rows in sizes:
        least = min(2 * cost[rows] for cost in costs)
        taken = makespan(schedules.of(rows, found[0][1]), rows)
        assert taken <= AS_GOOD * least * (1 + 1e-9)
    assert all(a is not b for (_, a), (_, b) in pairwise(found))


# Of random models, at every level


def random_mlp(seed: int) -> Mlp:
    rng = np.random.default_rng(seed)
    sizes = [int(n) for n in rng.integers(1, 140, rng.integers(2, 5))]
    return Mlp(sizes, list(ACTIVATIONS)[seed % 3], seed)


@pytest.mark.parametrize(
    ("name", "seed"),
    [*((name, seed) for name in ("cpu2", "test4") for seed in range(6)), ("h200", 0), ("h200", 4)],
)
def test_every_plan_computes_the_model_around_its_borders(name: str, seed: int) -> None:
    model = random_mlp(seed)
    ctx, module = scheduled(model, name, ("wavefront", "list", "auto")[seed % 3])
    ranges = [program.row_range for program in plans_of(module)]
    for rows in near(ranges):
        if rows > 500:  # the interpreter copies all operands for each rTask
            continue
        x = model.inputs(rows)
        for order in range(2 if name != "h200" else 1):
            agree(run_module(module, ctx.weights, [x], seed=order)[0], model, x)


@pytest.mark.parametrize("seed", range(4))
def test_programs_agree_with_the_model_around_the_borders(seed: int) -> None:
    model = Mlp((64, 128, 96, 10), "Relu", seed) if seed == 0 else random_mlp(40 + seed)
    program = irkit.compile(model.model(), device="cpu2")
    executor = program._first.executor
    ranges = [plan.program.rows for plan in executor.plans]
    assert len(ranges) > 1 or seed
    for mode in MODES:
        executor.mode = mode
        for rows in near(ranges):
            agree(program(model.inputs(rows)), model, model.inputs(rows))
        assert program(model.inputs(1)[:0]).shape == (0, model.sizes[-1])


# What users see


@pytest.fixture(scope="module")
def compiled():
    return irkit.compile(Mlp((64, 128, 128, 10)).model(), device="cpu2")


def test_calls_go_to_the_plan_of_their_rows(compiled) -> None:
    executor = compiled._first.executor
    first, last = executor.plans[0], executor.plans[-1]
    assert first is executor
    (_, end), (start, _) = first.program.rows, last.program.rows
    assert executor.plan_of(0) is first
    assert executor.plan_of(end) is first
    assert executor.plan_of(start) is last
    assert executor.plan_of(10**9) is last
    assert all(plan._constants is executor._constants for plan in executor.plans)
    assert first.program.kernels == last.program.kernels
    assert {a.kernel for a in first.program.appends} != {a.kernel for a in last.program.appends}


def test_report_ir_and_timelines_say_which_rows_they_are_of(compiled) -> None:
    ranges = [called(p.program.rows) for p in compiled._first.executor.plans]
    report = compiled.report()
    assert [plan["rows"] for plan in report["plans"]] == ranges
    assert list(report["measured"]) == ranges
    assert any("costs_ns" in of_one for of_one in report["roperators"].values())
    assert compiled.ir().count("task.program @main_schedule") == len(ranges)
    assert [t.title for t in compiled.timelines()] == [f"planned, {rows}" for rows in ranges]
    for rows, name in ((2, ranges[0]), (300, ranges[-1])):
        x = Mlp((64, 128, 128, 10)).inputs(rows)
        titles = [t.title for t in compiled.timelines([x], "per-wave")]
        assert titles == [f"planned, {name}", f"measured, per-wave, {name}"]


def test_plans_are_saved_with_their_program(compiled, tmp_path) -> None:
    path = tmp_path / "program.irkit"
    compiled.save(path)
    again = irkit.load(path)
    ranges = [plan.program.rows for plan in again._first.executor.plans]
    assert ranges == [plan.program.rows for plan in compiled._first.executor.plans]
    for rows in near(ranges):
        x = Mlp((64, 128, 128, 10)).inputs(rows)
        assert np.array_equal(again(x), compiled(x))


@pytest.mark.parametrize(
    ("pattern", "text", "words"),
    [
        (r"PLANS = \(\n    PROGRAM,", "PLANS = (PROGRAM, PROGRAM,", "come where those from"),
        (r"(?s)PLANS = .*", "", "none is for"),
        (r"rows=\(\d+, -1\)", "rows=(4000, -1)", "come where those from"),
        (r"    rows=\(0, \d+\)", "    rows=(0, -1)", "come behind a range without an end"),
        (r"(PLANS = [^;]*?Operand\(1, 0, )0", r"\g<1>16", "not the one that was proved"),
        (r"PROGRAM\.plan\(", "PROGRAM.plan(verified='sha256:0',", "of several proofs"),
    ],
)
def test_changed_plans_of_a_saved_program_are_refused(
    compiled, tmp_path, pattern: str, text: str, words: str
) -> None:
    path = tmp_path / "program.irkit"
    compiled.save(path)
    artifact = Artifact.load(path)
    changed = re.sub(pattern, text, artifact.source, count=1)
    assert changed != artifact.source
    with pytest.raises(ArtifactError, match=words):
        Variant(replace(artifact, source=changed))


def test_a_dropped_program_with_plans_is_freed() -> None:
    program = irkit.compile(Mlp((64, 128, 10)).model(), device="cpu2")
    kept = [id(plan) for plan in program._first.executor.plans]
    gc.collect()
    gc.disable()
    try:
        del program
        alive = {id(o) for o in gc.get_objects() if type(o).__name__ == "CpuExecutor"}
    finally:
        gc.enable()
    assert not alive & set(kept)


# What the proof refuses


def refusal(text: str) -> str:
    """What `verify-schedule` says of a text."""
    ctx, _ = proved()
    module = parse_module(ctx, text, "changed.mlir")
    check_module(module)
    with pytest.raises(PassFailedException) as caught:
        VerifySchedule().apply(ctx, module)
    return str(caught.value)


def without_plan(text: str, number: int) -> str:
    """A text without one of its programs."""
    parts = re.split(r"(?m)^(?=  task\.program )", text)
    at = [n for n, part in enumerate(parts) if part.startswith("  task.program")][number]
    end = parts[at].index("\n  }\n") + len("\n  }\n")
    return "".join([*parts[:at], parts[at][end:], *parts[at + 1 :]])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda t: re.sub(r"rows \[0:(\d+)\]", "rows [0:7777]", t),
            "rule 'rows': of the schedules",
        ),
        (lambda t: re.sub(r"rows \[0:", "rows [1:", t), "those from 0 on are next"),
        (lambda t: re.sub(r" rows \[(\d+):\]", r" rows [\1:9999]", t), "none is for 10000 rows"),
        (lambda t: re.sub(r" rows \[\d+:\]", "", t), "rule 'rows'"),
        (lambda t: without_plan(t, 0), "those from 0 on are next"),
        (lambda t: without_plan(t, 1), "none is for"),
    ],
)
def test_ranges_that_leave_rows_out_are_refused(change, words: str) -> None:
    text = proved()[1]
    changed = change(text)
    assert changed != text
    assert words in refusal(changed)


def test_constants_in_other_places_are_refused() -> None:
    text = proved()[1]
    at = text.rindex("task.program @main_schedule")
    changed = text[:at] + re.sub(
        r"(constant_bytes = )(\d+)", lambda m: f"{m[1]}{int(m[2]) + 256}", text[at:], count=1
    )
    assert "rule 'constant'" in refusal(changed)


def test_an_append_of_another_rkernel_with_the_same_body_is_the_same_launch() -> None:
    """Both compute what is launched: the second program may take the first's choice; another body it may
    not."""
    ctx, text = proved()
    changed = text.replace("task.append @gemm_0_1 ", "task.append @gemm_0 ")
    assert changed != text
    module = parse_module(ctx, changed, "changed.mlir")
    VerifySchedule().apply(ctx, module)
    model = Mlp((64, 128, 128, 10))
    x = model.inputs(40)
    agree(run_module(module, ctx.weights, [x])[0], model, x)
    body = re.search(r"(?s)task\.roperator @gemm_0_1.*?\n  }\n", text)
    assert body is not None
    other = body[0].replace("arith.maximumf", "arith.minimumf")
    assert other != body[0]
    assert "rule 'meaning'" in refusal(text.replace(body[0], other))


def test_a_function_without_a_batch_has_no_ranges() -> None:
    ctx, module = scheduled_fixed()
    text = str(module).replace("of @main attributes", "of @main rows [0:] attributes")
    again = text.replace("rows [0:]", "rows [0:4]")
    assert "task.program @main_schedule of @main attributes" in str(module)
    parsed = parse_module(ctx, again, "changed.mlir")
    with pytest.raises(PassFailedException, match="rule 'rows'"):
        VerifySchedule().apply(ctx, parsed)


def scheduled_fixed():
    imported = read_model(Mlp((4, 4)).model(), "float32", batch=3)
    ctx = IrkitContext(weights=imported.weights)
    register_dialects(ctx)
    for level in ("graph", "tensor", "task", "schedule"):
        run_level(ctx, imported.module, level, "cpu2")
    return ctx, imported.module


def test_ranges_that_run_backwards_are_no_program() -> None:
    ctx, text = proved()
    changed = re.sub(r"rows \[0:\d+\]", "rows [7:3]", text)
    with pytest.raises(UserError, match=r"rows first <= last, got \[7:3\]"):
        check_module(parse_module(ctx, changed, "changed.mlir"))


# On a GPU


@pytest.fixture(scope="module")
def for_h200() -> str:
    ctx, module = scheduled(Mlp((64, 128, 128, 10)), "h200")
    assert len(plans_of(module)) > 1
    return emit_module(module, ctx.weights)


def test_one_walker_has_room_for_every_plan(for_h200: str) -> None:
    program, facts = read_facts(for_h200)
    assert len(program.plans) > 1
    assert why_not_all([plan.rows for plan in program.plans]) is None
    most = max(len(a.operands) for plan in program.plans for a in plan.appends)
    assert facts.record_words >= 6 + 3 * most
    assert all(plan.shared_bytes <= facts.shared_bytes for plan in program.plans)


def test_the_cuda_executor_takes_the_plan_of_the_rows(
    for_h200: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gc.collect()
    monkeypatch.setattr(fake_cuda, "_MEMORY", 1 << 26)
    fake = fake_cuda.FakeDriver(132)
    for module in (driver, streams):
        monkeypatch.setattr(module, "api", lambda: fake)
    for cached in (driver.device, extent_probe):
        cached.cache_clear()
    program, facts = read_facts(for_h200)
    weights = {n: np.zeros(size // 4, np.float32) for n, _, size in program.constants}
    run = executor.CudaExecutor(program, facts, b"cubin", weights, mode="persistent")
    taken: list[tuple[int, int]] = []
    monkeypatch.setattr(
        executor.CudaExecutor, "launch", lambda plan, *_: taken.append(plan.program.rows)
    )
    for plan in run.plans:
        assert plan.residence._bases[2] == run.residence._bases[2], "constants are there once"
    for rows in (1, *(plan.rows[0] for plan in program.others)):
        run.run([np.zeros((rows, 64), np.float32)])
    assert taken == [plan.rows for plan in program.plans]
