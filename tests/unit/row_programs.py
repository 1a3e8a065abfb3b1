"""Random computations of rows, as graphs and in NumPy: elements and sums along rows of one another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any
_TYPES = {"float32": "f32", "float64": "f64"}
_SUMS = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}


@dataclass
class RowProgram:
    """A graph that gives rows of some shape, its inputs, and what NumPy has for it in float64."""

    text: str
    inputs: list[Array]
    want: Array


class _Writer:
    def __init__(self, rng: Any, lead: list[int], columns: int, kind: str) -> None:
        self.rng, self.kind, self.lead, self.columns = rng, kind, lead, columns
        self.lines: list[str] = []
        self.types: list[str] = []
        self.inputs: list[Array] = []
        self.values: list[tuple[str, str, Array]] = []

    def type(self, shape: list[int]) -> str:
        return f"tensor<{''.join(f'{s}x' for s in shape)}{_TYPES[self.kind]}>"

    def draw(self, shape: list[int]) -> None:
        array = self.rng.uniform(0.5, 1.5, shape).astype(self.kind)
        name = f"%a{len(self.inputs)}"
        self.types.append(f"{name}: {self.type(shape)}")
        self.inputs.append(array)
        self.values.append((name, self.type(shape), array.astype(np.float64)))

    def add(
        self, op: str, operands: list[Any], shape: list[int], value: Array, more: str = ""
    ) -> None:
        name = f"%v{len(self.lines)}"
        names, types = ", ".join(o[0] for o in operands), ", ".join(o[1] for o in operands)
        t = self.type(shape)
        self.lines.append(f"  {name} = graph.{op} {names} {more}: ({types}) -> {t}")
        self.values.append((name, t, value))

    def any(self) -> Any:
        return self.values[int(self.rng.integers(len(self.values)))]


def row_program(
    seed: int, columns: int | None = None, kind: str = "float32", rows: int | None = None
) -> RowProgram:
    """The one of a seed: its last value hangs on at least one sum along its rows."""
    rng = np.random.default_rng(seed)
    lead = [int(n) for n in rng.integers(1, 6, int(rng.integers(1, 3)))]
    lead = lead if rows is None else [rows]
    columns = columns or int(rng.integers(2, 70))
    w = _Writer(rng, lead, columns, kind)
    full, one = [*lead, columns], [*lead, 1]
    for shape in (full, full, one, [columns]):
        w.draw(shape)
    for _ in range(int(rng.integers(2, 9))):
        wide = [v for v in w.values if v[1] == w.type(full)]
        x = wide[int(rng.integers(len(wide)))]
        draw = rng.random()
        if draw < 0.4:
            name = str(rng.choice([*_SUMS]))
            axis = f'{{kind = "{name}", axes = array<i64: {len(lead)}>, keepdims = true}} '
            w.add("reduce", [x], one, _SUMS[name](x[2], axis=-1, keepdims=True), axis)
        elif draw < 0.55:
            w.add("sqrt", [x], full, np.sqrt(x[2]))
        else:
            name, function = [("add", np.add), ("mul", np.multiply), ("max", np.maximum)][
                int(rng.integers(3))
            ]
            y = w.any()
            w.add(name, [x, y], full, function(x[2], y[2]))
            # What grows is brought back, so that no float overflows.
            half = np.sqrt(w.values[-1][2])
            w.add("sqrt", [w.values[-1]], full, half)
    wide = [v for v in w.values if v[1] == w.type(full)]
    x = wide[-1]
    name = str(rng.choice([*_SUMS]))
    axis = f'{{kind = "{name}", axes = array<i64: {len(lead)}>, keepdims = true}} '
    w.add("reduce", [x], one, _SUMS[name](x[2], axis=-1, keepdims=True), axis)
    w.add("div", [x, w.values[-1]], full, x[2] / w.values[-1][2])
    name, t, want = w.values[-1]
    text = f"func.func @main({', '.join(w.types)}) -> {t} {{\n" + "\n".join(w.lines)
    return RowProgram(f"{text}\n  func.return {name} : {t}\n}}\n", w.inputs, want)
