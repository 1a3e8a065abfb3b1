"""Maps on a GPU four elements at a time: what is read and written at once, and that it is the map."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from emulated_op import roperator, run_by

import irkit
from irkit.rkernels.binding.read_ahead import read_ahead
from irkit.runtime.cuda import compiling, ptx
from irkit.runtime.cuda.facts import read_facts

ELEMENTS = {
    "float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64", "int8": "i8", "uint8": "ui8",
    "int16": "i16", "bool": "i1",
}  # fmt: skip
Draw = Callable[..., Any]


def of(*shape: int, kind: str = "float32") -> str:
    element = ELEMENTS.get(kind, kind)
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def added(shape: list[int], kind: str, draw: Draw, rng: Any) -> tuple[str, list[Any], Any]:
    """Something that is broadcast."""
    small = [s if rng.random() < 0.5 else 1 for s in shape]
    x, y, t, u = draw(*shape), draw(*small), of(*shape, kind=kind), of(*small, kind=kind)
    text = f"func.func @main(%x: {t}, %y: {u}) -> {t} {{ %r = graph.add %x, %y : ({t}, {u}) -> {t}"
    return f"{text} func.return %r : {t} }}", [x, y], x + y


def compared(shape: list[int], kind: str, draw: Draw, rng: Any) -> tuple[str, list[Any], Any]:
    """A result of booleans."""
    x, y, t, u = draw(*shape), draw(*shape), of(*shape, kind=kind), of(*shape, kind="bool")
    text = f'%r = graph.compare %x, %y {{predicate = "lt"}} : ({t}, {t}) -> {u}'
    return (
        f"func.func @main(%x: {t}, %y: {t}) -> {u} {{ {text} func.return %r : {u} }}",
        [x, y],
        x < y,
    )


def chosen(shape: list[int], kind: str, draw: Draw, rng: Any) -> tuple[str, list[Any], Any]:
    """An operand of booleans."""
    c, x, y = rng.random(shape) < 0.5, draw(*shape), draw(*shape)
    t, u = of(*shape, kind=kind), of(*shape, kind="bool")
    text = f"%r = graph.where %c, %x, %y : ({u}, {t}, {t}) -> {t}"
    head = f"func.func @main(%c: {u}, %x: {t}, %y: {t}) -> {t}"
    return f"{head} {{ {text} func.return %r : {t} }}", [c, x, y], np.where(c, x, y)


def picked(shape: list[int], kind: str, draw: Draw, rng: Any) -> tuple[str, list[Any], Any]:
    """Rows of a table, times a row."""
    places = rng.integers(0, shape[0], int(rng.integers(1, 7)))
    x, t, i = draw(*shape), of(*shape, kind=kind), of(len(places), kind="int64")
    y, u = draw(shape[-1]), of(shape[-1], kind=kind)
    v = of(len(places), *shape[1:], kind=kind)
    text = f"""func.func @main(%x: {t}, %i: {i}, %y: {u}) -> {v} {{
      %m = graph.gather %x, %i {{axis = 0 : i64}} : ({t}, {i}) -> {v}
      %r = graph.mul %m, %y : ({v}, {u}) -> {v}
      func.return %r : {v}
    }}"""
    return text, [x, places, y], x[places] * y


def joined(shape: list[int], kind: str, draw: Draw, rng: Any) -> tuple[str, list[Any], Any]:
    """Columns from anywhere of three, put together along any dimension but the first, and twice that."""
    shape = [1 + shape[0], *shape[1:]]
    axis, lines, parts = int(rng.integers(1, len(shape))), list[str](), list[Any]()
    given = [draw(*shape[:-1], shape[-1] + int(n)) for n in rng.choice([0, 2, 4, 8], 3)]
    t, u = of(*shape, kind=kind), [s * (3 if d == axis else 1) for d, s in enumerate(shape)]
    for n, x in enumerate(given):
        first = int(rng.choice([0, x.shape[-1] - shape[-1]]))
        parts.append(x[..., first : first + shape[-1]])
        offsets = str([*([0] * (len(shape) - 1)), first])[1:-1]
        lines.append(
            f"%s{n} = graph.slice %x{n} {{offsets = array<i64: {offsets}>, sizes = array<i64: "
            f"{str(shape)[1:-1]}>, strides = array<i64: {str([1] * len(shape))[1:-1]}>}} "
            f": ({of(*x.shape, kind=kind)}) -> {t}"
        )
    y, v = np.concatenate(parts, axis), of(*u, kind=kind)
    head = ", ".join(f"%x{n}: {of(*x.shape, kind=kind)}" for n, x in enumerate(given))
    joins = f"%c = graph.concat(%s0, %s1, %s2) {{axis = {axis} : i64}} : ({t}, {t}, {t}) -> {v}"
    text = (
        f"{' '.join(lines)} {joins} %r = graph.add %c, %c : ({v}, {v}) -> {v} func.return %r : {v}"
    )
    return f"func.func @main({head}) -> {v} {{ {text} }}", given, y + y


def padded(shape: list[int], kind: str, draw: Draw, rng: Any) -> tuple[str, list[Any], Any]:
    """Around any dimensions, and something that is broadcast."""
    low, high = (rng.integers(0, 3, len(shape)) * (rng.random(len(shape)) < 0.6) for _ in range(2))
    if (low[-1] + high[-1]) % 4:
        low[-1] = high[-1] = int(rng.choice([0, 2, 4]))
    x, y = draw(*shape), draw(shape[-1] + int(low[-1] + high[-1]))
    want = np.pad(x, [*zip(low, high, strict=True)], constant_values=1) + y
    t, u, v = of(*shape, kind=kind), of(*y.shape, kind=kind), of(*want.shape, kind=kind)
    lows, highs = (", ".join(map(str, amounts)) for amounts in (low, high))
    text = f"%p = graph.pad %x {{low = array<i64: {lows}>, high = array<i64: {highs}>, value = 1.0 : f64}}"
    text = f"{text} : ({t}) -> {v} %r = graph.add %p, %y : ({v}, {u}) -> {v} func.return %r : {v}"
    return f"func.func @main(%x: {t}, %y: {u}) -> {v} {{ {text} }}", [x, y], want


@pytest.mark.parametrize("case", [added, compared, chosen, picked, joined, padded])
@pytest.mark.parametrize("seed", range(8))
def test_random_maps(case: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = [*ELEMENTS][seed % 7]
    shape = [int(n) for n in rng.integers(1, 6, rng.integers(1, 4))] + [4 * int(rng.integers(1, 9))]

    def draw(*sizes: int) -> Any:
        return (6 * rng.standard_normal(sizes)).astype(kind)

    text, given, want = case(shape, kind, draw, rng)
    op, order = roperator(text)
    arrays = [given[n] for n in order]
    for blocks, vector, two in ((1, True, 1), (2, True, 0), (1, False, 1)):
        got = np.full(want.shape, 77, np.uint8 if want.dtype == bool else want.dtype)
        text = run_by(op, "map.fours", arrays, [got], 3, blocks, vector, TWO=two)
        np.testing.assert_array_equal(got.view(want.dtype), want)
        # Integers of 16 bits would be taken for floats.
        assert ("    store_four(p" in text) is (want.dtype != np.int16)


def test_parts_side_by_side_are_read_ahead_in_fours() -> None:
    """Heads of queries and of keys, one behind another: a branch for all of a four, which only reads."""
    x, y = (np.random.default_rng(n).standard_normal((4, 3, 64)).astype("float32") for n in (0, 1))
    t, p, u = of(4, 3, 64), of(4, 3, 32), of(4, 6, 32)
    op, order = roperator(f"""func.func @main(%x: {t}, %y: {t}) -> {u} {{
      %p = graph.slice %x {{offsets = array<i64: 0, 0, 32>, sizes = array<i64: 4, 3, 32>,
        strides = array<i64: 1, 1, 1>}} : ({t}) -> {p}
      %q = graph.slice %y {{offsets = array<i64: 0, 0, 0>, sizes = array<i64: 4, 3, 32>,
        strides = array<i64: 1, 1, 1>}} : ({t}) -> {p}
      %c = graph.concat(%p, %q) {{axis = 1 : i64}} : ({p}, {p}) -> {u}
      %r = graph.neg %c : ({u}) -> {u}
      func.return %r : {u}
    }}""")
    got = np.full((4, 6, 32), 77, np.float32)
    text = run_by(op, "map.fours", [[x, y][n] for n in order], [got], 3)
    np.testing.assert_array_equal(got, -np.concatenate([x[..., 32:], y[..., :32]], 1))
    read, stored = (
        text[text.index(f"_{name}(p0") :].partition("@fused")[0]
        for name in ("fetch_four", "store_four")
    )
    assert (read.count("load_four("), read.count("if ")) == (2, 2)
    assert "    if " not in stored.partition("def ")[0]


@pytest.mark.parametrize("name", ["map.elements", "map.fetched", "map.fours"])
def test_rows_that_padded_numbers_pick(name: str) -> None:
    x, places = np.random.default_rng(0).standard_normal((9, 8)), np.array([3, 8, 1, 5])
    t, i, v = of(9, 8, kind="float64"), of(4, kind="int64"), of(7, 8, kind="float64")
    op, order = roperator(f"""func.func @main(%x: {t}, %a: {i}) -> {v} {{
      %i = graph.pad %a {{low = array<i64: 2>, high = array<i64: 1>, value = 0.0 : f64}}
        : ({i}) -> tensor<7xi64>
      %y = graph.gather %x, %i {{axis = 0 : i64}} : ({t}, tensor<7xi64>) -> {v}
      func.return %y : {v}
    }}""")
    got = np.full((7, 8), 77.0)
    run_by(op, name, [[x, places][n] for n in order], [got], 1)
    np.testing.assert_array_equal(got, x[[0, 0, 3, 8, 1, 5, 0]])


@pytest.mark.parametrize(("columns", "parts"), [(36, 8), (36, 3), (36, 9), (20, 3), (8, 8)])
def test_parts_of_rows_that_begin_anywhere(columns: int, parts: int) -> None:
    x, t = np.random.default_rng(0).standard_normal((3, columns)), of(3, columns, kind="float64")
    op, _ = roperator(
        f"func.func @main(%x: {t}) -> {t} {{ %y = graph.neg %x : ({t}) -> {t} func.return %y : {t} }}"
    )
    got = np.full_like(x, 77)
    run_by(op, "map.fours", [x], [got], grid=[1, parts])
    np.testing.assert_array_equal(got, -x)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["softmax", "layer_norm"])
def test_rows_with_what_is_fused_behind_them(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = "float64" if seed == 5 else "float32"
    rows, columns = int(rng.integers(1, 40)), 4 * int(rng.integers(1, 64))
    x, y = (rng.standard_normal(s).astype(kind) for s in ((rows, columns), (columns,)))
    t, u = of(rows, columns, kind=kind), of(columns, kind=kind)
    more = "axis = 1 : i64" if name == "softmax" else "epsilon = 1.0e-05 : f64, centred = true"
    op, order = roperator(f"""func.func @main(%x: {t}, %y: {u}) -> {t} {{
      %m = graph.{name} %x {{{more}}} : ({t}) -> {t}
      %r = graph.mul %m, %y : ({t}, {u}) -> {t}
      func.return %r : {t}
    }}""")
    if name == "softmax":
        raised = np.exp(x - x.max(1, keepdims=True))
        want = raised / raised.sum(1, keepdims=True) * y
    else:
        want = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * y
    arrays = [[x, y][n] for n in order]
    for blocks, vector, many in ((1, True, 1), (3, True, 2), (2, False, 4)):
        got = np.full_like(want, 77)
        text = run_by(op, f"{name}.fours", arrays, [got], 2, blocks, vector, ROWS=many)
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)
        assert "    store_four(p" in text


def emitted(text: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """PTX of the kernels that run each rOperator of a program alone."""
    monkeypatch.setattr(
        "irkit.runtime.cuda.compiling.compile_module", lambda *_: b"machine code of nobody's"
    )
    monkeypatch.setattr("irkit.runtime.cuda.availability.why_not", lambda: "no CUDA device")
    program = irkit.compile(irkit.parse(text), target="cuda", device="h200", cache=False)
    _, facts = read_facts(program.source)
    entries = [e for e in facts.entries if e.startswith("op_")]
    made = compiling.compile_module_with_ptx(program.source, entries, facts.threads, facts.arch)
    assert all(found["spill_stores"] == 0 for found in made.resources().values())
    return "\n".join(ptx.functions(made.ptx).values())


@pytest.mark.parametrize(
    ("kind", "load", "store"),
    [
        ("f32", "v4.f32", "v4.f32"), ("i32", "v4.u32", "v4.u32"), ("f64", "v2.f64", "v2.f64"),
        ("i64", "v2.u64", "v2.u64"), ("i8", "v4.u8", "v4.u8"), ("bf16", "v4.u16", "v4.u16"),
        # The compiler takes halves in pairs.
        ("f16", "b32", "v4.b16"),
    ],
)  # fmt: skip
def test_elements_of_all_types_are_read_and_stored_at_once(
    kind: str, load: str, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    t = of(600, 1000, kind=kind)
    text = f"func.func @main(%x: {t}, %y: {t}) -> {t} {{ %z = graph.add %x, %y : ({t}, {t}) -> {t}"
    code = emitted(f"{text} func.return %z : {t} }}", monkeypatch)
    assert f"ld.{load}" in code
    assert f"st.{store}" in code
    assert not re.search(r"\bst\.[fub]\d", code)


def test_rows_of_a_table_are_on_their_way_together(monkeypatch: pytest.MonkeyPatch) -> None:
    t, i, u = of(1000, 512), of(2000, kind="i64"), of(2000, 512)
    code = emitted(
        f"""func.func @main(%x: {t}, %i: {i}) -> {u} {{
          %y = graph.gather %x, %i {{axis = 0 : i64}} : ({t}, {i}) -> {u}
          func.return %y : {u}
        }}""",
        monkeypatch,
    )
    loop = re.search(r"ld\.v4\.f32.*?\bst\.", code, re.S)
    assert loop is not None
    assert loop[0].count("ld.v4.f32") == 2


def test_what_hangs_on_a_branch_is_read_at_behind_it() -> None:
    lines = ["v0 = int64(0)", "if j < 4:", "    v0 = p0[j]", "v1 = p1[v0]", "p2[j] = v1"]
    found = read_ahead(lines, ("p0", "p1"))
    assert found.before == lines[:4]
    assert found.after == lines[4:]
    assert found.names == ["v0", "v1"]
    assert found.types == {"v0": "int64"}


@pytest.mark.parametrize(
    "test",
    [
        "if a0 < 4:",
        "if v9 < 4:",
        "if j < 4:\n    v2 = p3[j]",
        "if j < 4:\n    v2 = v8 + acc",
        "if j < 4:\n    v2 = p1[j]\n    v3 = v2 + 1",
        "if j < 4:\n    v2 = p1[j]\n    v3 = p1[v2]",
        "if j < 4:\n    v2 = p1[j]\n    if v2 < 3:",
    ],
)
def test_branches_that_hang_on_sums_are_no_place_to_read_at(test: str) -> None:
    """Nor are those that read what is written meanwhile, or compute of what they read."""
    lines = ["v0 = int64(0)", *test.split("\n"), "    v0 = p0[j]", "v1 = p1[v0]", "p2[j] = v1"]
    found = read_ahead(lines, ("p0", "p1"))
    assert found.before == []
    assert found.after == lines


def test_branches_are_read_ahead_whole() -> None:
    """Two that look alike, and what is made of them; what is not loaded stays."""
    branch = ["if v0 < 4:", "    v{1} = v0 + v9", "    v{0} = p0[v{1}]", "    v{2} = v{0}", "else:"]
    branch += ["    v{3} = v0 - 4", "    v{4} = load_four(p1, v{3}, 1)", "    v{2} = v{4}[0]"]
    one, other = ([t.format(*range(n, n + 5)) for t in branch] for n in (10, 20))
    lines = [
        "v0 = r % 8",
        "v9 = float32(1.0)",
        "v12 = float32(0.0)",
        *one,
        "v22 = float32(0.0)",
        *other,
    ]
    lines += ["v30 = v12 + acc", "v31 = v30 + v22", "p2[j] = v31"]
    found = read_ahead(lines, ("p0", "p1"))
    assert found.before == [*lines[:3], *one, "v22 = float32(0.0)", *other]
    assert found.names == ["v12", "v22"]
    assert found.after == [*lines[:2], *lines[-3:]]


def test_what_a_place_is_read_from_is_read_ahead_too() -> None:
    lines = [
        "v0 = p0[r]",
        "v1 = min(max(v0, 0), 7)",
        "v2 = load_four(p1, v1 * 8 + j, 1)",
        "v3 = v2[0]",
    ]
    found = read_ahead(lines, ("p0", "p1"))
    assert found.before == lines[:3]
    assert found.names == ["v0", "v2"]
    assert found.after == [lines[1], lines[3]]


@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_what_a_product_adds_of_branches_is_read_before_its_sums(kind: str) -> None:
    """Where threads have no row, they have of it what is of the same type."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype("float32") for s in ((1, 300), (1024, 300)))
    u = (6 * rng.standard_normal((1, 256))).astype(kind)
    t, p, v = of(1, 1024), of(1, 1024, kind=kind), of(1, 256, kind=kind)
    cast = f"%c = graph.cast %p {{to = f32}} : ({p}) -> {t}" if kind != "float32" else ""
    text = f"""func.func @main(%a: {of(1, 300)}, %b: {of(1024, 300)}, %u: {v}) -> {t} {{
      %g = graph.gemm %a, %b {{trans_a = false, trans_b = true, alpha = 1.0 : f64, beta = 0.0 : f64}}
        : ({of(1, 300)}, {of(1024, 300)}) -> {t}
      %p = graph.pad %u {{low = array<i64: 0, 5>, high = array<i64: 0, 763>, value = 0.0 : f64}}
        : ({v}) -> {p}
      {cast}
      %y = graph.add %g, {"%c" if cast else "%p"} : ({t}, {t}) -> {t}
      func.return %y : {t}
    }}"""
    op, order = roperator(text)
    got = np.full((1, 1024), 77, np.float32)
    source = run_by(op, "gemv.rows", [[a, b, u][n] for n in order], [got], 3)
    want = a @ b.T + np.pad(u, ((0, 0), (5, 763)))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    assert "if " in source[source.index("_fetch(p0") :].partition("@fused")[0]
    # What threads have is told apart by types when it is compiled.
    found = irkit.compile(irkit.parse(text), device="h200", cache=False)
    assert "gemv.rows" in found.ir("schedule")
