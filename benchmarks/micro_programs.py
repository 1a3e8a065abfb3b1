"""Programs of one op each, from which `benchmarks.calibrate` finds the rates of a machine.

Sizes are drawn apart on purpose: of few elements and many, of few terms and many, so that what an rTask
costs before it computes can be told from what it computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.harness import peer


@dataclass(frozen=True)
class Micro:
    """A program: `make` gives what `irkit.compile` takes."""

    name: str
    make: Callable[[], Any]


def micro_programs() -> list[Micro]:
    """All of them, by name; forests where scikit-learn is installed."""
    texts = dict(_texts())
    return [*(Micro(name, lambda t=t: _parsed(t)) for name, t in texts.items()), *_forests()]


def _parsed(text: str) -> Any:
    import irkit

    return irkit.parse(text)


def _texts() -> Iterator[tuple[str, str]]:
    for make in (_maps, _moves, _rows, _reductions, _windows, _products, _convolutions, _cells):
        yield from make()


def _tensor(*shape: int, element: str = "f32") -> str:
    return f"tensor<{'x'.join([*map(str, shape), element])}>"


_APPROXIMATE = "attributes {irkit.fastmath = #arith.fastmath<afn>} "


def _program(
    op: str, inputs: list[str], result: str, attributes: str = "", granted: str = ""
) -> str:
    """`@main` of one op; `granted` are attributes of the function."""
    names = [f"%x{n}" for n in range(len(inputs))]
    declared = ", ".join(f"{n}: {t}" for n, t in zip(names, inputs, strict=True))
    given = f"({', '.join(names)})" if op == "concat" else " " + ", ".join(names)
    types = ", ".join(inputs)
    return (
        f"func.func @main({declared}) -> {result} {granted}{{\n"
        f"  %y = graph.{op}{given} {attributes} : ({types}) -> {result}\n"
        f"  func.return %y : {result}\n}}\n"
    )


_UNARY = ["relu", "sqrt", "exp", "log", "tanh", "erf", "sigmoid", "sin", "cos", "atan", "sinh"]
_FUNCTIONS = ["exp", "log", "tanh", "erf", "sigmoid", "sin", "cos", "atan"]
_BINARY = ["add", "div", "pow"]
_SIZES = ((4, 64), (64, 512), (256, 1024))


def _maps() -> Iterator[tuple[str, str]]:
    for rows, width in _SIZES:
        t = _tensor(rows, width)
        for op in _UNARY:
            yield f"{op} {rows}x{width}", _program(op, [t], t)
        for op in _FUNCTIONS:
            yield f"{op} {rows}x{width}, approximate", _program(op, [t], t, granted=_APPROXIMATE)
        for op in _BINARY:
            yield f"{op} {rows}x{width}", _program(op, [t, t], t)


def _moves() -> Iterator[tuple[str, str]]:
    """Elements that are not computed but found."""
    for n, m in ((32, 64), (128, 512)):
        t = _tensor(n, m)
        yield (
            f"transpose {n}x{m}",
            _program("transpose", [t], _tensor(m, n), "{permutation = array<i64: 1, 0>}"),
        )
        pad = "{low = array<i64: 1, 1>, high = array<i64: 1, 1>, value = 0.0 : f64}"
        yield f"pad {n}x{m}", _program("pad", [t], _tensor(n + 2, m + 2), pad)
        sizes = f"sizes = array<i64: {n}, {m // 2 - 1}>"
        cut = f"{{offsets = array<i64: 0, 1>, {sizes}, strides = array<i64: 1, 2>}}"
        yield f"slice {n}x{m}", _program("slice", [t], _tensor(n, m // 2 - 1), cut)
        yield (
            f"concat {n}x{m}",
            _program("concat", [t, t], _tensor(n, 2 * m), "{axis = 1 : i64}"),
        )
        picked = _tensor(m, element="i64")
        yield f"gather {n}x{m}", _program("gather", [t, picked], t, "{axis = 1 : i64}")


def _rows() -> Iterator[tuple[str, str]]:
    for rows, width in ((64, 2), (512, 10), (8, 1000), (64, 1000), (16, 4096)):
        t = _tensor(rows, width)
        yield f"softmax {rows}x{width}", _program("softmax", [t], t, "{axis = 1 : i64}")
        found = _tensor(rows, element="i64")
        attributes = "{axis = 1 : i64, keepdims = false}"
        yield f"argmax {rows}x{width}", _program("argmax", [t], found, attributes)


def _reductions() -> Iterator[tuple[str, str]]:
    for kind in ("sum", "max"):
        for rows, width in ((64, 16), (256, 64), (64, 1024), (512, 512), (16, 4096)):
            t, attributes = _tensor(rows, width), f'kind = "{kind}", keepdims = false'
            for axis, left in ((1, rows), (0, width)):
                yield (
                    f"{kind} {rows}x{width} over {axis}",
                    _program(
                        "reduce", [t], _tensor(left), f"{{axes = array<i64: {axis}>, {attributes}}}"
                    ),
                )


def _windows() -> Iterator[tuple[str, str]]:
    for channels, size, kernel, step in ((8, 16, 2, 2), (64, 56, 3, 2), (64, 28, 3, 1)):
        t, pad = _tensor(1, channels, size, size), kernel // 2
        out = (size + 2 * pad - kernel) // step + 1
        window = (
            f"kernel_shape = array<i64: {kernel}, {kernel}>, strides = array<i64: {step}, {step}>, "
            f"pads = array<i64: {pad}, {pad}, {pad}, {pad}>"
        )
        result = _tensor(1, channels, out, out)
        name = f"{channels}x{size}x{size} by {kernel}"
        yield f"max_pool {name}", _program("max_pool", [t], result, f"{{{window}}}")
        mean = f"{{{window}, count_include_pad = false}}"
        yield f"average_pool {name}", _program("average_pool", [t], result, mean)
    for channels, size in ((16, 8), (512, 13), (2048, 7)):
        t = _tensor(1, channels, size, size)
        result = _tensor(1, channels, 1, 1)
        yield (
            f"global_average_pool {channels}x{size}",
            _program("global_average_pool", [t], result),
        )


def _products() -> Iterator[tuple[str, str]]:
    shapes = ((1, 64, 64), (1, 256, 1024), (1, 2048, 1000), (4, 512, 512))
    for m, k, n in (*shapes, (32, 64, 64), (64, 256, 128), (128, 256, 512)):
        yield f"gemm {m}x{k}x{n}", _gemm(str(m), k, n)
    # A batch: shares of it are the rTasks.
    for k, n in ((64, 128), (128, 10), (512, 256)):
        yield f"gemm batch x{k}x{n}", _gemm("?", k, n)
    for m, k, n in ((64, 128, 64), (256, 512, 256)):
        types = [_tensor(m, k), _tensor(k, n)]
        yield f"matmul {m}x{k}x{n}", _program("matmul", types, _tensor(m, n))
    for m in (8, 64, 256):
        wide = f"tensor<{m}x{m}xf64>"
        yield f"matmul f64 {m}", _program("matmul", [wide, wide], wide)


def _gemm(m: str, k: int, n: int) -> str:
    settings = "{trans_a = false, trans_b = true, alpha = 1.0 : f64, beta = 1.0 : f64}"
    inputs = [f"tensor<{m}x{k}xf32>", _tensor(n, k), _tensor(n)]
    return _program("gemm", inputs, f"tensor<{m}x{n}xf32>", settings)


def _convolutions() -> Iterator[tuple[str, str]]:
    for c, size, o, kernel, step, group in (
        (3, 16, 8, 3, 1, 1),
        (3, 112, 64, 7, 2, 1),
        (16, 32, 16, 3, 1, 1),
        (64, 56, 64, 1, 1, 1),
        (64, 28, 64, 3, 1, 1),
        (128, 28, 128, 3, 2, 1),
        (256, 14, 64, 1, 1, 1),
        (256, 14, 256, 3, 1, 1),
        (512, 7, 512, 3, 1, 1),
        (512, 7, 2048, 1, 1, 1),
        (64, 28, 64, 3, 1, 64),
        (256, 14, 256, 3, 1, 256),
        (128, 16, 128, 3, 1, 8),
    ):
        pad = kernel // 2
        out = (size + 2 * pad - kernel) // step + 1
        attributes = (
            f"{{strides = array<i64: {step}, {step}>, pads = array<i64: {pad}, {pad}, {pad}, {pad}>, "
            f"dilations = array<i64: 1, 1>, group = {group} : i64}}"
        )
        inputs = [_tensor(1, c, size, size), _tensor(o, c // group, kernel, kernel), _tensor(o)]
        yield (
            f"conv {c}x{size} to {o} by {kernel}, step {step}, groups {group}",
            _program("conv", inputs, _tensor(1, o, out, out), attributes),
        )


def _cells() -> Iterator[tuple[str, str]]:
    for inputs, hidden in ((16, 16), (64, 64), (256, 256), (512, 512)):
        x, h = _tensor(1, inputs), _tensor(1, hidden)
        weights = [_tensor(4 * hidden, inputs), _tensor(4 * hidden, hidden), _tensor(4 * hidden)]
        types = [x, h, h, *weights]
        declared = ", ".join(f"%x{n}: {t}" for n, t in enumerate(types))
        given = ", ".join(f"%x{n}" for n in range(len(types)))
        yield (
            f"lstm_cell {inputs} to {hidden}",
            f"func.func @main({declared}) -> ({h}, {h}) {{\n"
            f"  %h, %c = graph.lstm_cell {given} : ({', '.join(types)}) -> ({h}, {h})\n"
            f"  func.return %h, %c : {h}, {h}\n}}\n",
        )


def _forests() -> list[Micro]:
    try:
        peer("sklearn.ensemble")
    except ImportError:
        return []
    sizes = ((10, 3), (100, 6), (100, 8), (20, 14))
    return [Micro(f"forest {t} of depth {d}", lambda t=t, d=d: _forest(t, d)) for t, d in sizes]


def _forest(trees: int, depth: int) -> Any:
    import numpy as np

    rng = np.random.default_rng(0)
    x = rng.standard_normal((3000, 16), dtype=np.float32)
    y = x[:, :5].sum(1) + rng.standard_normal(len(x))
    regressor = peer("sklearn.ensemble").RandomForestRegressor
    return regressor(trees, max_depth=depth, random_state=0).fit(x, y)
