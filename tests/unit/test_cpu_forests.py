"""Trees on a CPU: each way through them has the bits of the forest's own walk, for any rows."""

from __future__ import annotations

import numpy as np
import pytest
from test_tree_programs import FEATURES, NUMBERS, forest

import irkit
from irkit.driver.compiler.artifacts import build_artifact
from irkit.interp.graph import run_graph
from irkit.rkernels import registry
from irkit.runtime.variant import Variant

ROWS = (1, 2, 7, 8, 9, 63, 64, 65, 130)

# Trees, depth, output columns, whether a leaf has a value for each, comparison, element type.
SHAPES = [
    (1, 0, 1, False, "le", "float32"),
    (3, 1, 2, False, "lt", "float64"),
    (70, 3, 1, False, "lt", "float32"),
    (5, 5, 3, True, "le", "float64"),
    (9, 6, 1, False, "le", "float32"),
    (4, 8, 2, True, "lt", "float32"),
    (66, 7, 4, False, "le", "float64"),
]


@pytest.mark.parametrize(
    ("shape", "variant"), [*((s, "levels") for s in SHAPES), *((s, "blocks") for s in SHAPES[2:4])]
)
def test_same_bits_as_the_walk(shape: tuple, variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.find("cpu", "perfect_forest.levels")
    known = registry._REGISTERED["cpu", "perfect_forest"]
    alone = [k for k in known if k.variant == variant]
    monkeypatch.setitem(registry._REGISTERED, ("cpu", "perfect_forest"), alone)
    check(shape, f"perfect_forest.{variant}")


def check(shape: tuple, rkernel: str) -> None:
    """All numbers of rows, with and without a NaN, against the interpreter."""
    imported, rng = forest(SHAPES.index(shape), *shape)
    artifact = build_artifact(forest(SHAPES.index(shape), *shape)[0], "cpu1", cache=False)
    assert f"rKernel {rkernel}," in artifact.source
    program = Variant(artifact, "auto")
    for rows in ROWS:
        x = rng.choice(NUMBERS, (rows, FEATURES)).astype(shape[-1])
        (want,) = run_graph(imported.module, imported.weights, [x])
        assert program.run([x])[0].tobytes() == want.tobytes()
        # A block with one NaN goes another way than the others.
        x[rng.integers(rows), rng.integers(FEATURES)] = np.nan
        (want,) = run_graph(imported.module, imported.weights, [x])
        assert program.run([x])[0].tobytes() == want.tobytes()


@pytest.mark.parametrize("shape", SHAPES[2:])
def test_linked_trees_have_the_same_bits(shape: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irkit.lower.graph_to_tensor.forest.MAX_PERFECT_DEPTH", 0)
    check(shape, "forest.blocks")


def test_levels_are_asked_where_columns_are_fewer_than_nodes() -> None:
    """What is chosen hangs on what it costs: of wide rows few trees look at little."""
    rng = np.random.default_rng(0)
    sklearn = pytest.importorskip("sklearn.ensemble")
    chosen = []
    for features, trees in ((8, 60), (3000, 2)):
        x = rng.random((60, features))
        model = sklearn.RandomForestRegressor(trees, max_depth=4, random_state=0).fit(x, x[:, 0])
        text = irkit.compile(model, target="cpu", device="cpu1", cache=False).source
        chosen.append("perfect_forest.levels" in text)
    assert chosen == [True, False]
