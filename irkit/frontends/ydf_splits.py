"""YDF's conditions as comparisons of columns with thresholds.

A row goes right where a column is not below a threshold. Numbers and truths are compared as they are; for
each set of categories, each feature that a node asks to be missing, and each oblique projection a column is
added. What becomes of a missing value is what YDF's engines make of it, which look at no node for it where
they can put the same value in its place everywhere (`serving/decision_forest`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from irkit.dialects.graph import (
    AddOp,
    AndOp,
    CastOp,
    CompareOp,
    ConcatOp,
    GatherOp,
    IsNanOp,
    MulOp,
    OrOp,
    WhereOp,
)
from irkit.errors import InvalidModelError, UnsupportedError
from irkit.frontends.categories import CategorySets
from irkit.frontends.module import GraphBuilder
from irkit.frontends.ydf_model import Feature, Tree, YdfModel
from irkit.weights import Array

MOST_PROJECTIONS = 1 << 14
"""Each is a column of all rows."""
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Split:
    """`column` counts those of `Splits`; right is where it is not below `threshold`, float32, and where it is
    NaN if `missing`."""

    column: int
    threshold: np.float32
    missing: bool


@dataclass
class Splits:
    """The columns that nodes compare, by what they hold, in the order in which they are met: the features,
    and then what is made of them."""

    features: Sequence[Feature]
    place: Mapping[int, int]
    imputed: bool
    """Whether missing numbers are the mean: nothing else is said of them by any node that is looked at."""
    quick: bool
    _keys: dict[Key, int] = field(default_factory=dict[Key, int])

    @staticmethod
    def of(model: YdfModel) -> Splits:
        """None are met yet."""
        imputed = all(_agrees(model, tree) for tree in model.trees)
        found = Splits(model.features, model.place, imputed, model.quick)
        for number in range(len(model.features)):
            found._column("feature", number)
        return found

    def split(self, condition: Any) -> Split:
        """That of a condition. Raises InvalidModelError, UnsupportedError."""
        name = type(condition).__name__
        if name == "NumericalSparseObliqueCondition":
            return self._oblique(condition)
        number = self._feature(condition.attribute)
        feature, missing = self.features[number], bool(condition.missing)
        match name:
            case "IsMissingInCondition":
                return Split(self._column("missing", number), np.float32(0.5), False)
            case "IsTrueCondition":
                _expect(feature, "BOOLEAN")
                return Split(number, np.float32(0.5), feature.mostly_true)
            case "CategoricalIsInCondition":
                _expect(feature, "CATEGORICAL")
                members = tuple(sorted({int(m) for m in condition.mask}))
                # Engines look the most frequent category up in place of a missing one.
                missing = feature.most_frequent in members
                return Split(self._column("set", number, members, missing), np.float32(0.5), False)
            case "DiscretizedNumericalHigherThanCondition":
                _expect(feature, "DISCRETIZED_NUMERICAL")
                bound = _boundary(feature, condition)
                # Of bins a QuickScorer does not keep what a node says.
                missing = missing and not self.quick
                if self.imputed:
                    missing = bool(np.float32(feature.mean) >= bound)
                return Split(number, _least(feature, bound), missing)
            case _:
                _expect(feature, "NUMERICAL")
                threshold = _threshold(condition.threshold)
                if self.imputed:
                    missing = bool(np.float32(feature.mean) >= threshold)
                return Split(number, threshold, missing)

    def _column(self, *key: Any) -> int:
        return self._keys.setdefault(key, len(self._keys))

    def _feature(self, attribute: int) -> int:
        number = self.place.get(int(attribute))
        if number is None:
            raise InvalidModelError(
                f"a condition of the YDF model reads column {attribute}, which is none of its features"
            )
        return number

    def _oblique(self, condition: Any) -> Split:
        numbers = tuple(self._feature(a) for a in condition.attributes)
        weights = tuple(float(_threshold(w)) for w in condition.weights)
        if not numbers or len(numbers) != len(weights):
            raise InvalidModelError(
                f"an oblique split of the YDF model has {len(numbers)} features and "
                f"{len(weights)} weights"
            )
        for number in numbers:
            _expect(self.features[number], "NUMERICAL")
        # A sum that is NaN is not at least the threshold.
        column = self._column("projection", numbers, weights)
        return Split(column, _threshold(condition.threshold), False)

    # The columns themselves

    def extend(self, builder: GraphBuilder, x: SSAValue) -> tuple[SSAValue, Array]:
        """x with all columns, and where each stands. `x`: rows×features, float32."""
        met: dict[str, list[Key]] = {"feature": [], "missing": [], "projection": [], "set": []}
        for key in self._keys:
            met[key[0]].append(key)
        if len(met["projection"]) > MOST_PROJECTIONS:
            raise UnsupportedError(
                f"a YDF model of {len(met['projection'])} oblique projections, of at most "
                f"{MOST_PROJECTIONS}"
            )
        x = self._known(builder, x)
        parts, order = [x], met["feature"]
        if met["missing"]:
            parts.append(_missing(builder, x, [key[1] for key in met["missing"]]))
            order = order + met["missing"]
        if met["projection"]:
            projected, keys = self._projected(builder, x, met["projection"])
            parts.append(projected)
            order = order + keys
        wide = builder(ConcatOp, *parts, axis=1) if len(parts) > 1 else x
        sets = CategorySets(len(order), unknown_left=True, named_right=True)
        stands = {key: number for number, key in enumerate(order)}
        for key in met["set"]:
            _, number, members, missing = key
            stands[key] = sets.column(number, members, nan_left=not missing)
        return sets.extend(builder, wide), np.array([stands[key] for key in self._keys])

    def _known(self, builder: GraphBuilder, x: SSAValue) -> SSAValue:
        """Numbers that are no category's are that of what no dictionary has; missing ones stay."""
        ends = [float(f.categories) if f.categories else np.inf for f in self.features]
        if np.isinf(ends).all():
            return x
        starts = [0.0 if f.categories else -np.inf for f in self.features]

        def compared(predicate: str, bounds: list[float], hint: str) -> SSAValue:
            limits = builder.constant(np.array(bounds, np.float32), hint)
            return builder(CompareOp, x, limits, predicate=predicate)

        below, beyond = compared("lt", starts, "first"), compared("ge", ends, "categories")
        counted = builder.constant(np.isfinite(ends), "categorical")
        strange = builder(AndOp, builder(OrOp, below, beyond), counted)
        return builder(WhereOp, strange, builder.constant(np.zeros(1, np.float32), "unknown"), x)

    def _projected(
        self, builder: GraphBuilder, x: SSAValue, keys: Sequence[Key]
    ) -> tuple[SSAValue, list[Key]]:
        """rows×projections, each summed in float32 in the order of its features, and the keys in order."""
        if self.imputed:
            means = np.array([f.mean for f in self.features], np.float32)
            x = builder(WhereOp, builder(IsNanOp, x), builder.constant(means, "means"), x)
        parts: list[SSAValue] = []
        order: list[Key] = []
        for terms in sorted({len(key[1]) for key in keys}):
            mine = [key for key in keys if len(key[1]) == terms]
            total: SSAValue | None = None
            for term in range(terms):
                numbers = np.array([key[1][term] for key in mine])
                weights = np.array([key[2][term] for key in mine], np.float32)
                cells = builder(GatherOp, x, builder.constant(numbers, "features"), axis=1)
                product = builder(MulOp, cells, builder.constant(weights, "weights"))
                total = product if total is None else builder(AddOp, total, product)
            assert total is not None
            parts.append(total)
            order += mine
        return (parts[0] if len(parts) == 1 else builder(ConcatOp, *parts, axis=1)), order


def _missing(builder: GraphBuilder, x: SSAValue, numbers: Sequence[int]) -> SSAValue:
    """rows×numbers: 1 where the feature is missing."""
    cells = builder(GatherOp, x, builder.constant(np.array(numbers), "asked"), axis=1)
    return builder(CastOp, builder(IsNanOp, cells), to=f32)


def _agrees(model: YdfModel, tree: Tree) -> bool:
    """Whether nodes say of missing numbers what their mean would, as YDF looks at it: it looks at no node
    below an oblique split."""
    left = [0]
    for node in left:
        condition = tree.conditions[node]
        name = type(condition).__name__
        if condition is None or name == "NumericalSparseObliqueCondition":
            continue
        if name in _COMPARED and _of_mean(model, condition, name) != bool(condition.missing):
            return False
        left += [int(tree.left[node]), int(tree.right[node])]
    return True


_COMPARED = ("DiscretizedNumericalHigherThanCondition", "NumericalHigherThanCondition")


def _of_mean(model: YdfModel, condition: Any, name: str) -> bool:
    number = model.place.get(int(condition.attribute))
    feature = None if number is None else model.features[number]
    if feature is None:
        return bool(condition.missing)
    if name == "NumericalHigherThanCondition":
        return bool(np.float32(feature.mean) >= np.float32(condition.threshold))
    # Of bins YDF compares the mean in float64.
    return bool(feature.mean >= np.float64(_boundary(feature, condition)))


def _boundary(feature: Feature, condition: Any) -> np.float32:
    """The lower end of the bin that a condition names."""
    number = int(condition.threshold_idx)
    if not 1 <= number <= len(feature.boundaries):
        raise InvalidModelError(
            f"a condition of the YDF model names bin {number} of feature '{feature.name}', which has "
            f"{len(feature.boundaries)} boundaries"
        )
    return feature.boundaries[number - 1]


def _least(feature: Feature, bound: np.float32) -> np.float32:
    """The least number whose bin is at least `bound` to YDF's engines: they compare the middle of a bin,
    rounded to float32, which may be the end of it; -infinity where the bin below all others is."""
    ends, one = feature.boundaries, np.float32(1)
    with np.errstate(over="ignore"):
        middles = (ends[:-1] + ends[1:]) / np.float32(2)
        bins = np.concatenate([[ends[0] - one], middles, [ends[-1] + one]])
    first = int(np.argmax(bins >= bound))
    return np.float32(-np.inf) if first == 0 else ends[first - 1]


def _threshold(value: Any) -> np.float32:
    found = np.float32(value)
    if np.isnan(found):
        raise InvalidModelError("a condition of the YDF model compares with NaN")
    return found


def _expect(feature: Feature, semantic: str) -> None:
    if feature.semantic != semantic:
        raise InvalidModelError(
            f"a condition of the YDF model reads feature '{feature.name}' as {semantic}, which is "
            f"{feature.semantic}"
        )
