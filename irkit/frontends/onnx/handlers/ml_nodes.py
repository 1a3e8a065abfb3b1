"""The nodes of ensembles of trees of the domain ai.onnx.ml, from both forms in which ONNX writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import numpy_helper

from irkit.frontends.onnx.handlers.ml_scores import numbers
from irkit.frontends.onnx.node import Node
from irkit.weights import Array

MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")
"""In the order of their numbers."""
LEAF = "LEAF"


@dataclass
class TreeNodes:
    """All nodes of an ensemble, tree after tree; children are numbers of nodes, of leaves their own.

    `split`: float64. `members`: node → the values of its set. `weights`: leaf → (target, weight).
    """

    mode: Sequence[str]
    feature: Array
    split: Array
    true: Array
    false: Array
    missing_true: Array
    roots: list[int]
    members: dict[int, list[float]] = field(default_factory=dict[int, list[float]])
    weights: dict[int, list[tuple[int, float]]] = field(
        default_factory=dict[int, list[tuple[int, float]]]
    )


def lists(node: Node, prefix: str) -> TreeNodes:
    """The form in which each node names its tree. `prefix`: of the lists of weights."""
    node.ignore("nodes_hitrates", "nodes_hitrates_as_tensor")
    tree, number = (numbers(node, f"nodes_{n}ids", np.int64) for n in ("tree", "node"))
    place = {key: i for i, key in enumerate(zip(tree.tolist(), number.tolist(), strict=True))}
    mode = [_text(m).removeprefix("BRANCH_") for m in node.attribute("nodes_modes", [])]
    own = np.arange(len(tree))
    leaf = np.array([m == LEAF for m in mode], np.bool_)
    true, false = (_children(node, side, tree, place, leaf) for side in ("true", "false"))
    children = {*true[~leaf].tolist(), *false[~leaf].tolist()}
    found = TreeNodes(
        mode,
        numbers(node, "nodes_featureids", np.int64),
        values(node, "nodes_values"),
        np.where(leaf, own, true),
        np.where(leaf, own, false),
        _missing(node, len(tree)),
        [i for i in own.tolist() if i not in children],
    )
    _check(node, found, len(place), tree)
    weights = _finite(node, f"{prefix}_weights", values(node, f"{prefix}_weights")).tolist()
    keys = [numbers(node, f"{prefix}_{n}ids", np.int64).tolist() for n in ("tree", "node")]
    targets = numbers(node, f"{prefix}_ids", np.int64).tolist()
    for *key, target, weight in zip(*keys, targets, weights, strict=True):
        found.weights.setdefault(place[key[0], key[1]], []).append((target, weight))
    if not all(leaf[i] for i in found.weights):
        node.refuse(f"{prefix}_nodeids", "weights of a node that is no leaf")
    return found


def _check(node: Node, found: TreeNodes, distinct: int, tree: Array) -> None:
    count = len(found.mode)
    lengths = (len(found.feature), len(found.split), len(found.missing_true), distinct, len(tree))
    if not count or any(n != count for n in lengths):
        node.refuse("nodes", "their lists have several lengths, or name a node twice")
    odd = sorted(set(found.mode) - {LEAF, *MODES[:-1]})
    if odd:
        node.refuse("nodes_modes", f"BRANCH_{odd[0]} is not supported")
    if len(found.roots) != len(set(tree.tolist())):
        node.refuse("nodes", "a tree has not one root")


def _children(
    node: Node, side: str, tree: Array, place: dict[tuple[int, int], int], leaf: Array
) -> Array:
    """The places of the nodes' children; 0 of leaves."""
    ids = numbers(node, f"nodes_{side}nodeids", np.int64).tolist()
    made = np.zeros(len(tree), np.int64)
    for i, (t, child) in enumerate(zip(tree.tolist(), ids, strict=True)):
        if not leaf[i]:
            made[i] = place[t, child]
    return made


def packed(node: Node) -> TreeNodes:
    """The form of TreeEnsemble: nodes that split, and leaves apart from them."""
    node.ignore("nodes_hitrates")
    kinds: list[int] = tensor(node, "nodes_modes").tolist()
    splits = len(kinds)
    leaves = _finite(node, "leaf_weights", tensor(node, "leaf_weights")).tolist()
    targets = numbers(node, "leaf_targetids", np.int64).tolist()
    own = np.arange(splits + len(leaves))
    true, false = own.copy(), own.copy()
    for made, side in ((true, "true"), (false, "false")):
        ids = numbers(node, f"nodes_{side}nodeids", np.int64)
        last = numbers(node, f"nodes_{side}leafs", np.int64)
        made[:splits] = np.where(last != 0, ids + splits, ids)
    after = np.zeros(len(leaves))
    found = TreeNodes(
        [*(MODES[k] for k in kinds), *([LEAF] * len(leaves))],
        np.concatenate([numbers(node, "nodes_featureids", np.int64), after.astype(np.int64)]),
        np.concatenate([tensor(node, "nodes_splits").astype(np.float64), after]),
        true,
        false,
        np.concatenate([_missing(node, splits), after.astype(np.bool_)]),
        [int(r) for r in node.attribute("tree_roots", [])],
        weights={
            splits + i: [(t, float(w))]
            for i, (t, w) in enumerate(zip(targets, leaves, strict=True))
        },
    )
    if max(true.max(), false.max()) >= len(own) or min(true.min(), false.min()) < 0:
        node.refuse("nodes", "they name a node that is not there")
    _read_members(node, found)
    _drop_splits_of_one_leaf(found)
    return found


def _read_members(node: Node, found: TreeNodes) -> None:
    """Sets stand one after another, with NaN between them."""
    given: list[float] = []
    if node.has("membership_values"):
        given = tensor(node, "membership_values").tolist()
    sets: list[list[float]] = [[]]
    for value in given:
        if np.isnan(value):
            sets.append([])
        else:
            sets[-1].append(float(value))
    asks = [i for i, mode in enumerate(found.mode) if mode == "MEMBER"]
    if len(asks) > len(sets):
        node.refuse("membership_values", f"{len(sets)} sets, expected {len(asks)}")
    found.members.update(zip(asks, sets, strict=False))


def _drop_splits_of_one_leaf(found: TreeNodes) -> None:
    """A tree of one leaf is a split both of whose sides are it."""
    found.roots[:] = [
        int(found.true[r]) if found.true[r] == found.false[r] else r for r in found.roots
    ]


def _finite(node: Node, name: str, weights: Array) -> Array:
    if not np.isfinite(weights).all():
        node.refuse(name, "a number that is not finite")
    return weights


def _missing(node: Node, count: int) -> Array:
    tracks = node.attribute("nodes_missing_value_tracks_true", [])
    return np.array(tracks, np.bool_) if len(tracks) else np.zeros(count, np.bool_)


def values(node: Node, name: str) -> Array:
    """A list of numbers, which may be given as a tensor, as float64."""
    if node.has(f"{name}_as_tensor"):
        return tensor(node, f"{name}_as_tensor").astype(np.float64)
    return numbers(node, name).astype(np.float64)


def tensor(node: Node, name: str) -> Array:
    """An attribute that is a tensor of one dimension."""
    given: Any = node.attribute(name, None)
    if given is None:
        node.refuse(name, "it is missing")
    return numpy_helper.to_array(given).reshape(-1)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
