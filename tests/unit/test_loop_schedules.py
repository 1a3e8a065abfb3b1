"""Schedules of loops: random legal ones are run by the interpreter and by the nests printed from them, and
equal what is computed without; what may not be is refused where it is written."""

from __future__ import annotations

import functools
from typing import Any

import cpu_emulator
import numpy as np
import pytest
from family_programs import choose_first

import irkit
from irkit.context import IrkitContext
from irkit.dialects.graph.expression import statement_of
from irkit.dialects.loop import ScheduleAttr
from irkit.dialects.roperator_root import Root
from irkit.dialects.task import ROperatorOp
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.errors import UnsupportedError
from irkit.expressions.loops import Axis, Nest, Split
from irkit.expressions.nest import TAKEN, nest_of
from irkit.expressions.steps import schedule_of
from irkit.expressions.syntax import ExpressionError
from irkit.interp.task import evaluate_body
from irkit.passes.task.candidates import Candidate
from irkit.rkernels import registry
from irkit.rkernels.bind import bind
from irkit.rkernels.legality import root_of, why_illegal
from irkit.rkernels.scheduled.layout import Layout
from irkit.rkernels.scheduled.rules import (
    NARROW,
    WIDE,
    Levels,
    default_schedules,
    register_tiles,
)
from irkit.schedule.devices import device as find_device
from irkit.weights import WeightStore

CASES: dict[str, tuple[str, tuple[tuple[int, ...], ...]]] = {
    "product": ("C(m, n) +=! A(m, k) * B(k, n)", ((7, 5), (5, 22))),
    "turned": ("C(m, n) +=! A(m, k) * B(n, k)", ((6, 9), (13, 9))),
    "batched": ("C(b, m, n) +=! A(b, m, k) * B(b, k, n)", ((2, 5, 4), (2, 4, 9))),
    "windows": (
        "O(o, y, x) +=! I(c, y + r, 2 * x + s) * W(o, c, r, s)",
        ((2, 5, 19), (3, 2, 3, 3)),
    ),
    "row": ("O(o, x) +=! I(c, x + s) * W(o, c, s)", ((2, 19), (5, 2, 3))),
    "columns": ("S(n) +=! X(k, n)", ((11, 18),)),
    "largest": ("S(m, n) max=! X(m, k, n)", ((3, 5, 12),)),
    "squares": ("S(n) +=! X(k, n) * X(k, n) + 1.0", ((6, 10),)),
    "added": ("", ()),
}
ADDED = """
func.func @main(%a: tensor<4x3xKIND>, %b: tensor<3x8xKIND>, %c: tensor<4x8xKIND>) -> tensor<4x8xKIND> {
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
      affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<4x3xKIND>, tensor<3x8xKIND>) outs(%c : tensor<4x8xKIND>) {
  ^bb0(%x: KIND, %w: KIND, %acc: KIND):
    %p = arith.MUL %x, %w : KIND
    %s = arith.ADD %acc, %p : KIND
    linalg.yield %s : KIND
  } -> tensor<4x8xKIND>
  func.return %y : tensor<4x8xKIND>
}
"""
TYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32}


def module(case: str, kind: str) -> str:
    """A function of one expression; `added` to what is there."""
    if case == "added":
        muls, adds = ("muli", "addi") if kind == "i32" else ("mulf", "addf")
        return ADDED.replace("KIND", kind).replace("MUL", muls).replace("ADD", adds)
    text, shapes = CASES[case]
    if kind == "i32":
        text = text.replace("1.0", "1")
    types = [f"tensor<{'x'.join(map(str, s))}x{kind}>" for s in shapes]
    made = statement_of(text, shapes, tuple(np.dtype(TYPES[kind]) for _ in shapes))
    result = f"tensor<{'x'.join(map(str, made.domain.shape))}x{kind}>"
    values = [f"%a{n}" for n in range(len(shapes))]
    given = ", ".join(f"{v}: {t}" for v, t in zip(values, types, strict=True))
    op = f'graph.expression {", ".join(values)} {{text = "{text}"}}'
    return (
        f"func.func @main({given}) -> {result} {{\n"
        f"  %y = {op} : ({', '.join(types)}) -> {result}\n  func.return %y : {result}\n}}\n"
    )


@functools.cache
def roperator(case: str, kind: str) -> ROperatorOp:
    """The rOperator of a case that reduces."""
    read, ctx = irkit.parse(module(case, kind)), IrkitContext()
    register_dialects(ctx)
    for level in ("task",) if case == "added" else ("graph", "tensor", "task"):
        run_level(ctx, read, level, "cpu2")
    choose_first(read)
    (found,) = [op for op in read.ops if isinstance(op, ROperatorOp) and root_of(op).reduction]
    return found


def scheduled(op: ROperatorOp, schedule: ScheduleAttr) -> None:
    """The rOperator is run by a schedule from now on."""
    rkernel, root = registry.find("cpu", "generated.nest"), root_of(op)
    grid = tuple(Layout.of(root, schedule).nest.grid)
    op.choose(Candidate(rkernel, grid, 1.0, schedule=schedule).alternative(root))


def drawn(rng: np.random.Generator, root: Root) -> ScheduleAttr | None:
    """A random schedule; None where it came out as one that may not be."""
    sizes, parallel = (*root.parallel, *root.reduction), len(root.parallel)
    names = [f"i{d}" for d in range(len(sizes))]
    inputs = [chr(97 + n) for n in range(len(root.chain[-1].inputs))]
    head, steps = f"for {', '.join(names)} of {', '.join(inputs)}", list[str]()

    def some(share: float) -> bool:
        return bool(rng.random() < share)

    if some(0.6):
        d = int(rng.integers(parallel))
        steps.append(f"bind {names[d]} to veu in {rng.integers(1, min(sizes[d], 4) + 1)}")
    try:
        if some(0.3):
            d = int(rng.integers(len(sizes) - 1))
            steps.append(f"fuse {names[d]}, {names[d + 1]} as f")
        for _ in range(int(rng.integers(4))):
            axis = list(relaxed(head, steps, sizes, parallel).order)[
                int(rng.integers(len(sizes) - 1))
            ]
            steps.append(f"split {axis.name} by {rng.integers(1, axis.least + 1)}")
        axes = list(relaxed(head, steps, sizes, parallel).order)
        rng.shuffle(axes)  # pyright: ignore[reportArgumentType]
        outside = [a for a in axes if not a.reduced and (a.extent > 8 or some(0.5))]
        inside = [a for a in axes if not a.reduced and a not in outside]
        reduced = [a for a in axes if a.reduced]
        written = [a for a in reduced if a.whole and a.extent < 5 and some(0.3)]
        plain = [a for a in reduced if a not in written]
        lanes = [a for a in inside if a.extent & (a.extent - 1) == 0 and a.extent > 1][-1:]
        tail = [*(a for a in [*inside, *written] if a not in lanes), *lanes]
        order = [*sorted(outside, key=_outer_first), *sorted(plain, key=_outer_first), *tail]
        if len(order) > 1:
            steps.append(f"reorder {', '.join(a.name for a in order)}")
        steps += [f"unroll {a.name}" for a in tail if a not in lanes]
        steps += [f"vectorize {a.name}" for a in lanes]
        for name in inputs:
            if some(0.6):
                run = [a.name for a in [*outside, *plain]]
                steps.append(
                    f"cache {name}" + (f" at {rng.choice(run)}" if run and some(0.7) else "")
                )
        made = ScheduleAttr.of(schedule_of("; ".join([head, *steps])))
        Layout.of(root, made)
        return made
    except ExpressionError:
        return None


def _outer_first(axis: Axis) -> int:
    """Loops that run over parts stand inside of those that count them."""
    return len(axis.name) + 10 * axis.name.endswith("i")


def relaxed(head: str, steps: list[str], sizes: tuple[int, ...], parallel: int) -> Nest:
    """The nest before it is whole: parallel loops may stand anywhere."""
    schedule = schedule_of("; ".join([head, *steps]))
    axes = tuple(
        Axis(n, s, d >= parallel, s)
        for d, (n, s) in enumerate(zip(schedule.loops, sizes, strict=True))
    )
    found = Nest(axes, schedule.operands, list(axes))
    for step in schedule.steps:
        TAKEN[step.kind](found, step)
    return found


def arrays(op: ROperatorOp, rng: np.random.Generator) -> list[np.ndarray]:
    """Operands: small whole numbers, of which every sum is exact."""
    types = [tensor_type(a) for a in op.body.block.args]
    return [rng.integers(-8, 9, t.get_shape()).astype(numpy_dtype(t.element_type)) for t in types]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("case", CASES)
def test_random_schedules_change_no_number(case: str, kind: str) -> None:
    op, rng = roperator(case, kind), np.random.default_rng(len(case))
    root, device, tried = root_of(op), find_device("cpu2"), 0
    for _ in range(120):
        schedule = drawn(rng, root)
        if schedule is None:
            continue
        tried += 1
        given = arrays(op, rng)
        op.schedule = None
        (want,) = evaluate_body(op, given, WeightStore())
        scheduled(op, schedule)
        assert why_illegal(op, device) is None, schedule
        (meant,) = evaluate_body(op, given, WeightStore())
        np.testing.assert_array_equal(meant, want, err_msg=str(schedule))
        result = np.full_like(want, -99)
        rkernel = registry.find("cpu", "generated.nest")
        binding = bind(op, root, rkernel, 1)
        for task in range(op.tasks):
            cpu_emulator.run(rkernel, binding, [*given, result], task, op.tasks, 1)
        np.testing.assert_array_equal(result, want, err_msg=str(schedule))
    assert tried >= 10


def test_a_nest_that_leaves_terms_out_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken once: the comparison above can fail."""
    op, rng = roperator("product", "f32"), np.random.default_rng(0)
    given = arrays(op, rng)
    op.schedule = None
    (want,) = evaluate_body(op, given, WeightStore())
    scheduled(op, ScheduleAttr.of(schedule_of("for m, n, k of A, B; split k by 2")))
    (meant,) = evaluate_body(op, given, WeightStore())
    np.testing.assert_array_equal(meant, want)
    monkeypatch.setattr(Split, "exact", property(lambda _: True))
    with pytest.raises((AssertionError, IndexError)):
        np.testing.assert_array_equal(evaluate_body(op, given, WeightStore())[0], want)


@pytest.mark.parametrize("case", CASES)
def test_default_schedules_are_legal(case: str) -> None:
    op = roperator(case, "f32")
    for tasks in (1, 2, 5):
        for schedule in default_schedules(root_of(op), tasks):
            scheduled(op, schedule)
            assert op.tasks <= tasks
            assert why_illegal(op, find_device("cpu2")) is None, schedule


TENSORISED = (
    "split m by 4 as mo, mi; split n by 8 as no, ni; reorder no, mo, mi, ni, k; tensorise mi, ni, k",
    "split m by 3 as mo, mi; split n by 24 as no, ni; reorder mo, no, mi, ni, k; tensorise mi, ni, k; "
    "cache A at no; cache B at no",
    "bind m to veu in 2; split n by 12 as no, ni; split m by 2 as mo, mi; split k by 5 as ko, ki; "
    "reorder no, mo, ko, ki, mi, ni; tensorise mi, ni, ki",
)


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("text", TENSORISED)
def test_tensorised_nests_are_tiles_of_vectors(
    text: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CASES, "tensor", ("C(m, n) +=! A(m, k) * B(k, n)", ((9, 13), (13, 29))))
    op, rng = roperator("tensor", kind), np.random.default_rng(0)
    given, rkernel = arrays(op, rng), registry.find("cpu", "generated.nest")
    op.schedule = None
    (want,) = evaluate_body(op, given, WeightStore())
    schedule = ScheduleAttr.of(schedule_of(f"for m, n, k of A, B; {text}"))
    scheduled(op, schedule)
    assert why_illegal(op, find_device("cpu2")) is None
    assert Layout.of(root_of(op), schedule).nest.vector is not None
    np.testing.assert_array_equal(evaluate_body(op, given, WeightStore())[0], want)
    result, binding = np.full_like(want, -99), bind(op, root_of(op), rkernel, 1)
    for task in range(op.tasks):
        cpu_emulator.run(rkernel, binding, [*given, result], task, op.tasks, 1)
    np.testing.assert_array_equal(result, want)


def test_what_no_vector_holds_is_not_tensorised() -> None:
    root = root_of(roperator("product", "f32"))
    text = "for m, n, k of A, B; split m by 2; split n by 11; reorder mo, no, mi, ni, k; tensorise mi, ni, k"
    with pytest.raises(ExpressionError, match="'ni' of 11 turns: vectors are of a power of two"):
        Layout.of(root, ScheduleAttr.of(schedule_of(text)))
    whole = roperator("product", "i32")
    text = "for m, n, k of A, B; split m by 2; split n by 4; reorder mo, no, mi, ni, k; tensorise mi, ni, k"
    with pytest.raises(ExpressionError, match="'tensorise' of sums of i32 that are no products"):
        Layout.of(root_of(whole), ScheduleAttr.of(schedule_of(text)))


SHAPES = (
    ("C(m, n) +=! A(m, k) * B(k, n)", lambda m, n, k: ((m, k), (k, n))),
    ("C(m, n) +=! A(k, m) * B(n, k)", lambda m, n, k: ((k, m), (n, k))),
    ("C(b, m, n) +=! A(b, m, k) * B(b, k, n) where b in 0:2", lambda m, n, k: ((2, m, k), (2, k, n))),
    ("O(o, y, x) +=! I(c, y + r, x + s) * W(o, c, r, s)", lambda m, n, k: ((2, 4, n + 2), (m, 2, 2, 3))),
    ("S(n) max=! X(k, n)", lambda m, n, k: ((k, n),)),
    ("S(m) +=! X(m, k)", lambda m, n, k: ((m, k),)),
)  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_what_the_rule_chooses_changes_no_number(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At random shapes, in as many parts as there may be, for wide and for narrow registers."""
    rng, rkernel, tried = np.random.default_rng(seed), registry.find("cpu", "generated.nest"), 0
    while tried < 6:
        text, shapes = SHAPES[int(rng.integers(len(SHAPES)))]
        m, n, k = (int(rng.integers(1, high)) for high in (30, 110, 30))
        case, kind = f"{text} {m} {n} {k}", str(rng.choice(list(TYPES)))
        monkeypatch.setitem(CASES, case, (text, shapes(m, n, k)))
        op = roperator(case, kind)
        found = default_schedules(root_of(op), int(rng.integers(1, 5)))
        if not found:
            continue
        tried += 1
        given = arrays(op, rng)
        op.schedule = None
        (want,) = evaluate_body(op, given, WeightStore())
        scheduled(op, found[int(rng.integers(len(found)))])
        assert why_illegal(op, find_device("cpu4")) is None
        np.testing.assert_array_equal(evaluate_body(op, given, WeightStore())[0], want)
        result, binding = np.full_like(want, -99), bind(op, root_of(op), rkernel, 1)
        for task in range(op.tasks):
            cpu_emulator.run(rkernel, binding, [*given, result], task, op.tasks, 1)
        np.testing.assert_array_equal(result, want, err_msg=str(op.schedule))


@pytest.mark.parametrize(("levels", "most"), [(WIDE, 32), (NARROW, 16)])
def test_tiles_fill_registers(levels: Levels, most: int) -> None:
    for rows, columns, size in ((64, 1000, 4), (512, 4096, 8), (1, 28, 4), (7, 3, 4)):
        tiles = register_tiles(levels, size, rows, columns)
        best = tiles[0]
        for tile in tiles:
            assert tile.rows * tile.vectors + tile.vectors + 1 <= most
            assert best.effort(rows, columns) <= tile.effort(rows, columns)
            assert tile.rows <= rows
            assert tile.columns <= columns
        if rows > 30:
            assert best.rows * best.vectors >= 8
            # No more than a twentieth is computed twice.
            assert -(-rows // best.rows) * best.rows <= rows * 1.05
            assert -(-columns // best.columns) * best.columns <= columns * 1.05


REFUSED = [
    ("split q by 3", "'split' of 'q', which is no loop here; there are m, n, k", 7),
    ("split m by 0", "'split' of 'm' by 0: expected 1 to 64, its turns", 7),
    ("split m by " + "9" * 5000, "a whole number of 5000 digits, which no type has", 12),
    ("split m by 65", "'split' of 'm' by 65: expected 1 to 64, its turns", 7),
    ("split m by 4; split m by 2", "'split' of 'm', which is no loop here", 21),
    ("split m by 4 as n, mi", "there is a loop 'n' already", 17),
    (
        "vectorize n",
        "'vectorize' of 'n' of 100 turns: expected a power of two from 2 to 64; split it",
        11,
    ),
    ("vectorize k", "'vectorize' of 'k', which is reduced: lanes are elements", 11),
    ("split n by 4; vectorize ni", "'k' inside of 'ni', which is a vector", 25),
    ("unroll m", "'unroll' of 'm' writes whole loops out: put it inside of what is reduced", 8),
    ("reorder k, m", "'n' inside of 'k', which is reduced: put it outside, or unroll it", 1),
    ("split k by 7; unroll ki", "'unroll' of 'ki', which has 2 to 7 turns", 22),
    ("split m by 4; reorder mi, mo", "'mi' outside of 'mo', whose parts it runs over", 23),
    ("fuse m, k", "'fuse' of 'm' and 'k', which are not side by side", 9),
    ("fuse n, k", "'fuse' of 'n' and 'k', of which one is reduced", 9),
    (
        "bind k to veu in 4",
        "4 parts of 'k', which is reduced and has 30: parts of a sum have as many terms each",
        6,
    ),
    ("bind m to veu in 65", "65 parts of 'm', which has 64", 6),
    ("cache C", "'cache' of 'C', which is no operand; there are A, B", 7),
    ("cache A at j", "'cache' at 'j'", 12),
    ("cache A; cache A", "'A' is cached already", 16),
    ("tensorise m, n", "the end of the text does not belong here; expected ','", 15),
    ("tensorise m, k, n", "'tensorise' of 'k' as columns, which is reduced", 14),
    ("tensorise n, m, k; tensorise m, n, k", "'tensorise' of 'm' after 'tensorise' of it", 30),
    (
        "split m by 7 as a, b; reorder a, n, b, k; tensorise n, b, k; unroll a",
        "'unroll' of 'a'",
        69,
    ),
    ("split n by 3; tensorise m, no, k", "'ni' inside of 'm', which is tensorised", 25),
    ("rule; split m by 2", "'rule' beside other steps", 1),
    ("split n by", "the end of the text does not belong here; expected a number", 11),
    ("tile m by 3", "'tile' does not belong here", 1),
]


@pytest.mark.parametrize(("text", "message", "column"), REFUSED)
def test_refused_where_it_is_written(text: str, message: str, column: int) -> None:
    with pytest.raises(ExpressionError) as refused:
        nest_of(schedule_of(text), (64, 100, 30), 2, ("m", "n", "k"), ("A", "B"))
    if "at 'j'" not in message:
        assert message in str(refused.value)
    assert (refused.value.line, refused.value.column) == (1, column), str(refused.value)


def test_an_operator_runs_by_its_schedule() -> None:
    tiled = """
    bind m to veu in 2
    split n by 16
    split m by 4
    reorder no, mo, k, mi, ni
    unroll mi
    vectorize ni
    cache B at no
    """
    product = irkit.te.op("C(m, n) +=! A(m, k) * B(k, n)", tiled, target="cpu")
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((20, 33), (33, 40)))
    np.testing.assert_allclose(product(a, b), a @ b, rtol=1e-4, atol=1e-5)
    assert "generated.nest" in product.jitted.ir("schedule")
    with pytest.raises(ExpressionError, match="'split' of 'm' by 4: expected 1 to 1, its turns"):
        product(a[:3], b)


@pytest.mark.parametrize(
    "text",
    [
        "C(m) max=! A(m, k) + A(m, k) * A(m, k)",
        "C(m) +=! A(m, k) * A(m, k)",
        "C(m) +=! A(m, 2 * k) where k in 0:13",
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_the_rule_has_a_nest_for_whatever_a_schedule_may_be_of(text: str, dtype: Any) -> None:
    a = np.random.default_rng(0).integers(-3, 4, (20, 26)).astype(dtype)
    ruled = irkit.te.op(text, "rule", target="cpu", device="cpu2")
    np.testing.assert_array_equal(ruled(a), irkit.te.op(text, target="cpu", device="cpu2")(a))
    assert "generated.nest" in ruled.jitted.ir("schedule")


def test_one_number_has_no_schedule() -> None:
    with pytest.raises(UnsupportedError, match="a schedule of one number"):
        irkit.te.op("S +=! A(k)", "rule", target="cpu")(np.ones(9))


@pytest.mark.parametrize(
    ("text", "steps", "message", "place"),
    [
        ("S(i) +=! A(i, k)", "# first\nsplit k by 2\n  bind i to thread", "'bind' of 'i' to threads", (3, 8)),
        ("S(i) +=! A(i, k)", "cache A at k in 2", "buffers of 'A', which only a GPU", (1, 7)),
        ("S(i) +=! A(i, k) * k", "\n bind k to veu in 2", "which is a number in the statement", (2, 7)),
        ("S(i) +=! A(i, k)", "split i by 4; reorder io, k, ii\nvectorize ii", "8 apart; cache it", (2, 11)),
    ],
)  # fmt: skip
def test_what_a_pass_refuses_is_at_its_place_in_what_was_written(
    text: str, steps: str, message: str, place: tuple[int, int]
) -> None:
    with pytest.raises(ExpressionError) as refused:
        irkit.te.op(text, steps, target="cpu")(np.ones((5, 8)))
    assert message in str(refused.value)
    assert (refused.value.line, refused.value.column) == place
    line = str(refused.value).splitlines()[1]
    assert line.strip() == steps.splitlines()[place[0] - 1].strip()


def test_a_pass_refuses_a_schedule_in_a_traced_function_with_a_caret() -> None:
    summed = irkit.te.op("S(i) +=! A(i, k)", "bind i to thread")
    with pytest.raises(ExpressionError, match=r"for i, k of A; bind i to thread\n +\^"):
        irkit.jit(lambda a: summed(a) * 2, target="cpu")(np.ones((5, 8)))


@pytest.mark.parametrize("schedule", ["rule", {"O": "split i by 2"}])
def test_what_reduces_nothing_has_no_schedule(schedule: Any) -> None:
    with pytest.raises(ExpressionError, match="no statement reduces: expected none"):
        irkit.te.op("O(i) = 2 * A(i)", schedule)


def test_parts_of_an_index_that_nothing_is_read_at() -> None:
    a = np.arange(6.0).reshape(2, 3)
    summed = irkit.te.op("S(i) +=! A(i, k) where l in 0:4", "bind l to veu in 2", target="cpu")
    np.testing.assert_array_equal(summed(a), 4 * a.sum(1))


def test_an_operator_is_chosen_by_measurement() -> None:
    a, b = (np.random.default_rng(0).random(s).astype(np.float32) for s in ((20, 33), (33, 40)))
    product = irkit.te.op("C(m, n) +=! A(m, k) * B(k, n)", target="cpu", measure=True)
    np.testing.assert_allclose(product(a, b), a @ b, rtol=1e-5)
    (found,) = product.jitted.report()["roperators"].values()
    assert found["cost_from"] == "measurement"


def test_schedules_of_several_statements_are_named() -> None:
    text = "S(i) +=! X(i, k); M(i) max=! X(i, k); O(i) = S(i) + M(i)"
    with pytest.raises(ExpressionError, match="give a mapping"):
        irkit.te.op(text, "split k by 2")
    for wrong in (3, {"S": 3}, ["split k by 2"]):
        with pytest.raises(ExpressionError, match="a schedule is a string, or a mapping"):
            irkit.te.op(text, wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ExpressionError, match="expected a tuple of numbers"):
        irkit.te.op(text).explain(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ExpressionError, match="a schedule for 'O': what reduces is S, M"):
        irkit.te.op(text, {"O": "split i by 2"})
    made = irkit.te.op(text, {"S": "split k by 3"}, target="cpu")
    x = np.arange(20.0).reshape(4, 5)
    np.testing.assert_allclose(made(x), x.sum(1) + x.max(1))
    assert "split k by 3 as ko, ki" in made.jitted.ir("task")
