"""LightGBM's text format: a header, and trees, as key → value text, checked before they are used."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from irkit.errors import InvalidModelError
from irkit.plain_json import parsed
from irkit.weights import Array

_END = "\nend of trees"
_CATEGORICAL = 1
_PER_LEAF = ("leaf_value",)
_PER_SPLIT = ("split_feature", "threshold", "decision_type", "left_child", "right_child")


@dataclass
class TextModel:
    """A model's header and trees as key → value text. `categories`: of each column of categories that a data
    frame had, in their order."""

    header: dict[str, str]
    trees: list[dict[str, str]]
    categories: tuple[tuple[str | int | float, ...], ...] = ()

    @property
    def features(self) -> int:
        """Columns of the rows that the model takes."""
        return int(self.header["max_feature_idx"]) + 1

    @property
    def columns(self) -> int:
        """Trees of an iteration: one for each column of the sums."""
        return int(self.header["num_tree_per_iteration"])


def read_file(path: str | Path) -> TextModel:
    """The model of a text file. Raises InvalidModelError for one that is none, or no whole one."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidModelError(f"cannot read '{path}': {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidModelError(f"'{path}' is no text file") from None
    if text.partition("\n")[0].strip() != "tree" or _END not in text:
        raise InvalidModelError(f"'{path}' is not a complete LightGBM text model")
    return parse_text(text)


def parse_text(text: str) -> TextModel:
    """Split `Booster.model_to_string()` into header and trees. Raises InvalidModelError for what contradicts
    itself."""
    body, _, tail = text.partition(_END)
    head, *rest = body.split("\nTree=")
    header, trees = _pairs(head), [_pairs(t) for t in rest]
    if "num_tree_per_iteration" not in header:
        raise InvalidModelError("the LightGBM model has no readable header")
    _check_header(header, len(trees))
    for number, tree in enumerate(trees):
        _check_tree(number, tree)
    return TextModel(header, trees, _categories(tail))


def _categories(tail: str) -> tuple[tuple[str | int | float, ...], ...]:
    """What stands behind the trees of columns of categories. Raises InvalidModelError for what is no such
    list."""
    _, named, found = tail.rpartition("\npandas_categorical:")
    if not named:
        return ()
    try:
        lists: Any = parsed(found.strip()) or ()
        made = tuple(tuple(values) for values in lists)
    except (TypeError, ValueError):
        raise InvalidModelError("the LightGBM model has pandas_categorical that are none") from None
    if not all(isinstance(v, str | int | float) for values in made for v in values):
        raise InvalidModelError(
            "the LightGBM model has categories that are neither strings nor numbers"
        )
    return made


def numbers(tree: dict[str, str], key: str, dtype: Any) -> Any:
    """The numbers of a key. Raises InvalidModelError for what are none."""
    try:
        return np.array(tree[key].split(), dtype=dtype)
    except KeyError:
        raise InvalidModelError(f"a tree of the LightGBM model has no {key}") from None
    except (ValueError, OverflowError):
        raise InvalidModelError(
            f"a tree of the LightGBM model has {key} that are no {np.dtype(dtype)}"
        ) from None


def _pairs(text: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for line in text.splitlines():
        key, _, value = line.partition("=")
        pairs[key] = value
    return pairs


def _whole(values: dict[str, str], key: str, where: str) -> int:
    try:
        return int(values[key])
    except (KeyError, ValueError):
        raise InvalidModelError(f"{where} has no readable {key}") from None


def _check_header(header: dict[str, str], trees: int) -> None:
    """Numbers that arrays are made by are counts of what is there."""
    where = "the LightGBM model's header"
    features, columns = (
        _whole(header, k, where) for k in ("max_feature_idx", "num_tree_per_iteration")
    )
    names = len(header.get("feature_names", "").split())
    if features + 1 != names:
        raise InvalidModelError(
            f"{where} has {names} feature_names, and max_feature_idx={features}"
        )
    if columns < 1 or trees % columns:
        raise InvalidModelError(f"{where} has num_tree_per_iteration={columns}, and {trees} trees")
    sizes = header.get("tree_sizes")
    if sizes is not None and len(sizes.split()) != trees:
        raise InvalidModelError(f"{where} has sizes of {len(sizes.split())} trees, of {trees}")


def _check_tree(number: int, tree: dict[str, str]) -> None:
    """Each list is as long as the tree's leaves or splits are many."""
    where = f"tree {number} of the LightGBM model"
    leaves = _whole(tree, "num_leaves", where)
    wanted = {**dict.fromkeys(_PER_LEAF, leaves), **dict.fromkeys(_PER_SPLIT, leaves - 1)}
    for key, count in wanted.items():
        found = len(tree.get(key, "").split())
        if found != count:
            raise InvalidModelError(f"{where} has {found} of {key}, expected {count}")


def cat_members(tree: dict[str, str], number: int) -> list[int]:
    """The categories of a tree's set of this number. Raises InvalidModelError for a set that is not there."""
    ends: Array = numbers(tree, "cat_boundaries", np.int64)
    words: Array = numbers(tree, "cat_threshold", np.uint32)
    if not 0 <= number < len(ends) - 1 or not 0 <= ends[number] <= ends[number + 1] <= len(words):
        raise InvalidModelError(f"a tree of the LightGBM model has no set of categories {number}")
    bits = words[ends[number] : ends[number + 1]].view(np.uint8)
    return np.flatnonzero(np.unpackbits(bits, bitorder="little")).tolist()
