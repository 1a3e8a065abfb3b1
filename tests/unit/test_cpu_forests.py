"""Trees on a CPU: each way through them has the bits of the forest's own walk, for any rows."""

from __future__ import annotations

import re

import numpy as np
import pytest
from test_tree_programs import FEATURES, NUMBERS, forest, random_tree

import irkit
from irkit.dialects.forests import ordered_trees
from irkit.driver.compiler.artifacts import build_artifact
from irkit.frontends.trees import join
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


@pytest.mark.parametrize(
    ("shape", "variant"), [(s, v) for s in SHAPES[1:] for v in ("blocks", "questions")]
)
def test_linked_trees_have_the_same_bits(
    shape: tuple, variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("irkit.lower.graph_to_tensor.forest.MAX_PERFECT_DEPTH", 0)
    if shape[-2] == "lt":
        # None is less than -inf, and such trees are not asked so.
        monkeypatch.setattr("test_tree_programs.NUMBERS", NUMBERS[1:])
    registry.find("cpu", "forest.blocks")
    known = registry._REGISTERED["cpu", "forest"]
    alone = [k for k in known if k.variant == variant]
    monkeypatch.setitem(registry._REGISTERED, ("cpu", "forest"), alone)
    check(shape, f"forest.{variant}")


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_packed_trees_have_the_same_bits(shape: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irkit.lower.graph_to_tensor.forest.MAX_PERFECT_DEPTH", 0)
    monkeypatch.setattr("irkit.lower.graph_to_tensor.forest.MAX_LEAVES_ASKED", 0)
    check(shape, "packed_forest.blocks")


def test_more_rows_go_through_a_tree_the_larger_it_is() -> None:
    rng = np.random.default_rng(0)
    sklearn = pytest.importorskip("sklearn.ensemble")
    x = rng.random((6000, 3))
    blocks = []
    for rows in (600, 6000):
        model = sklearn.ExtraTreesRegressor(2, random_state=0).fit(x[:rows], rng.random(rows))
        source = irkit.compile(model, target="cpu", device="cpu1", cache=False).source
        (found,) = re.findall(r"range\(r0, r1, (\d+)\)", source)
        blocks.append(int(found))
    assert blocks == [1024, 4096]


def test_nothing_is_asked_of_trees_with_a_threshold_below_all_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where a missing value goes left of `x < -inf`, it is no -inf itself."""
    monkeypatch.setattr("irkit.lower.graph_to_tensor.forest.MAX_PERFECT_DEPTH", 0)
    monkeypatch.setattr("test_tree_programs.NUMBERS", NUMBERS[:1])
    shape = (9, 5, 1, False, "lt", "float64")
    artifact = build_artifact(forest(0, *shape)[0], "cpu1", cache=False)
    assert "leaves" not in artifact.ir["task"]
    assert "rKernel packed_forest.blocks," in artifact.source


@pytest.mark.parametrize("seed", range(20))
def test_ordered_trees_are_the_same_trees(seed: int) -> None:
    """Each behind the one before: its root, inner nodes behind their parents, then leaves."""
    rng = np.random.default_rng(seed)
    base = np.zeros(1)
    parts = [random_tree(rng, int(rng.integers(6)), 1, 0, base) for _ in range(5)]
    trees = join(parts)
    given = (trees.feature, trees.threshold, trees.left, trees.right, trees.nan_left, trees.value)
    found = ordered_trees(*given, trees.root)
    assert found is not None
    feature, threshold, left, right, nan_left, value, root = found.arrays
    ends = [*root[1:], len(left)]
    leaf = left == np.arange(len(left))
    sizes = [(~leaf[a:b]).sum() for a, b in zip(root, ends, strict=True)]
    for first, end, inner in zip(root, ends, sizes, strict=True):
        assert end - first == 2 * inner + 1
        assert not leaf[first : first + inner].any()
        for children in (left, right):
            assert (children[first : first + inner] > np.arange(first, first + inner)).all()
    assert found.leaves == max(sizes) + 1
    pairs = list(zip(trees.root.tolist(), root.tolist(), strict=True))
    while pairs:
        old, new = pairs.pop()
        assert value[new] == trees.value[old]
        assert leaf[new] == (trees.left[old] == old)
        if leaf[new]:
            continue
        assert (feature[new], threshold[new]) == (trees.feature[old], trees.threshold[old])
        assert nan_left[new] == trees.nan_left[old]
        pairs += [(trees.left[old], left[new]), (trees.right[old], right[new])]


def test_a_child_of_two_nodes_has_no_order() -> None:
    left, right = np.array([1, 2, 2, 3]), np.array([2, 3, 2, 3])
    zeros = np.zeros(4)
    assert ordered_trees(left, zeros, left, right, zeros != 0, zeros[:, None], left[:1] * 0) is None


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
