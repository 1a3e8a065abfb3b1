"""What the importers of all estimators share: the graph under construction, and what it must refuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, Block, SSAValue, TypeAttribute

from irkit.dialects.graph import (
    AbsOp,
    AddOp,
    CastOp,
    CompareOp,
    ConcatOp,
    DivOp,
    GatherOp,
    IsNanOp,
    MatmulOp,
    MulOp,
    OrOp,
    ReduceOp,
    ReshapeOp,
    SubOp,
    WhereOp,
)
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import DYNAMIC, element_type, numpy_dtype, tensor_type
from irkit.frontends.module import GraphBuilder, Outputs
from irkit.frontends.sklearn.forms import Form, side_by_side
from irkit.frontends.sklearn.strings import Words
from irkit.weights import Array

Missing = Literal["keeps", "clears", "makes"]


@dataclass(frozen=True)
class Values:
    """What a value's elements may be."""

    nan: bool = True
    infinite: bool = True


def _nothing(step: Any) -> list[str]:
    return []


def _no_members(step: Any) -> list[tuple[str, Any]]:
    return []


@dataclass(frozen=True)
class Transformer:
    """How to import a transformer. `why_not` gives reasons that its parameters show, `why_not_fitted`
    those that only a fitted one shows. `nan`: whether NaN that goes in comes out, or NaN may come of
    numbers. `bounded`: finite input gives finite output, whatever its size. `members`: the fitted estimators
    that it asks, by the attributes that have them."""

    build: Callable[[Importer, Any, SSAValue], SSAValue]
    why_not: Callable[[Any], list[str]] = _nothing
    why_not_fitted: Callable[[Any], list[str]] = _nothing
    nan: Missing = "keeps"
    bounded: bool = False
    members: Callable[[Any], list[tuple[str, Any]]] = _no_members


@dataclass(frozen=True)
class Predictor:
    """How to import an estimator that comes last. `trees`: it makes a float32 copy of its input. `members`:
    the fitted estimators that it asks, by the attributes that have them."""

    build: Callable[[Importer, Any, SSAValue], Outputs]
    why_not: Callable[[Any], list[str]] = _nothing
    why_not_fitted: Callable[[Any], list[str]] = _nothing
    trees: bool = False
    members: Callable[[Any], list[tuple[str, Any]]] = _no_members


@dataclass
class Importer:
    """One import: the graph under construction, and what is known of its values.

    `predict` imports an estimator within another.
    """

    builder: GraphBuilder
    predict: Callable[[Importer, Any, SSAValue], Outputs]
    known: dict[SSAValue, Values] = field(default_factory=dict[SSAValue, Values])
    checks: dict[str, list[SSAValue]] = field(default_factory=dict[str, list[SSAValue]])
    words: Words = field(default_factory=Words)
    counts: dict[tuple[int, ...], int] = field(default_factory=dict[tuple[int, ...], int])
    """Which column of the program the counts of a vectorizer begin at, by its `id` and its sources."""
    forms: dict[SSAValue, Form] = field(default_factory=dict[SSAValue, Form])
    """Values that scikit-learn has as sparse matrices; all others are dense."""
    types: dict[SSAValue, tuple[str, ...]] = field(default_factory=dict[SSAValue, tuple[str, ...]])
    """Types of the columns of values that scikit-learn has as data frames of several; float64 here."""
    approximate: bool = True
    """Whether functions may be computed in vector registers, as NumPy does; native libraries ask C's."""
    any_scores: bool = False
    """Whether what some estimator calls probabilities may be any numbers."""

    _met: dict[tuple[int, SSAValue], Outputs] = field(
        default_factory=dict[tuple[int, SSAValue], Outputs]
    )

    def outputs(self, estimator: Any, x: SSAValue) -> Outputs:
        """The methods of a fitted estimator or Pipeline on x; the same ones if it is asked again."""
        key = (id(estimator), x)
        if key not in self._met:
            self._met[key] = self.predict(self, estimator, x)
        return self._met[key]

    def tree_input(self, x: SSAValue, name: str, nan: bool, infinite: bool = False) -> SSAValue:
        """The float32 copy that trees make of x, which has no NaN and no infinity if they take none.

        Of a sparse matrix they take no NaN; only what looks at nothing does, and so takes infinity too.
        """
        nan = nan and (infinite or not self.is_sparse(x))
        narrow = self.cast(x, np.float32)
        known = self.known.get(x, Values())
        # A float64 may be too large for the copy.
        self.known.setdefault(narrow, Values(known.nan, True))
        self.require_finite(narrow, name, nan, infinite)
        return narrow

    # Types

    def dtype(self, x: SSAValue) -> np.dtype[Any]:
        """NumPy's name for the element type of `x`."""
        return numpy_dtype(tensor_type(x).element_type)

    def width(self, x: SSAValue) -> int:
        """Columns of rows×columns."""
        return tensor_type(x).get_shape()[1]

    def cast(self, x: SSAValue, dtype: Any) -> SSAValue:
        """`x` as `dtype`; itself if it is that already."""
        element = element_type(np.dtype(dtype))
        if tensor_type(x).element_type == element:
            return x
        assert isinstance(element, TypeAttribute)
        return self.of_form(self.builder(CastOp, x, to=element), self.forms.get(x))

    def is_sparse(self, x: SSAValue) -> bool:
        """Whether scikit-learn has x as a sparse matrix."""
        return self.forms.get(x, Form.DENSE) is not Form.DENSE

    def of_form(self, y: SSAValue, form: Form | None) -> SSAValue:
        """y, which scikit-learn has in that form."""
        if form is not None:
            self.forms[y] = form
        return y

    # Arithmetic with constants, which take x's dtype

    def constant(self, x: SSAValue, array: Any, hint: str = "w") -> SSAValue:
        """`array` in the dtype of x."""
        return self.builder.constant(np.ascontiguousarray(array, self.dtype(x)), hint)

    def add(self, x: SSAValue, array: Any, hint: str = "w") -> SSAValue:
        """x + array"""
        return self.builder(AddOp, x, self.constant(x, array, hint))

    def sub(self, x: SSAValue, array: Any, hint: str = "w") -> SSAValue:
        """x - array"""
        return self.builder(SubOp, x, self.constant(x, array, hint))

    def mul(self, x: SSAValue, array: Any, hint: str = "w") -> SSAValue:
        """x * array"""
        return self.builder(MulOp, x, self.constant(x, array, hint))

    def div(self, x: SSAValue, array: Any, hint: str = "w") -> SSAValue:
        """x / array"""
        return self.builder(DivOp, x, self.constant(x, array, hint))

    def update(self, op: type[GraphOp], x: SSAValue, array: Any, hint: str) -> SSAValue:
        """x with `array` applied in place: computed in the wider dtype, kept in x's."""
        wide = self.cast(x, np.result_type(self.dtype(x), np.asarray(array).dtype))
        return self.cast(self.builder(op, wide, self.constant(wide, array, hint)), self.dtype(x))

    def matmul(self, x: SSAValue, matrix: Any, hint: str = "w") -> SSAValue:
        """x @ matrix"""
        return self.builder(MatmulOp, x, self.constant(x, matrix, hint))

    def weighed(self, x: SSAValue, matrix: Array) -> tuple[SSAValue, Array]:
        """x and a matrix that it is multiplied by, without what is multiplied by zeros alone.

        As they are where x may be infinite, or is the model's own input, of which all is there.
        """
        known = self.known.get(x, Values())
        kept = np.flatnonzero((matrix != 0).any(axis=1))
        whole = len(kept) in (0, len(matrix)) or isinstance(x.owner, Block)
        if whole or known.nan or known.infinite:
            return x, matrix
        return self.columns(x, kept), matrix[kept]

    def compare(self, x: SSAValue, predicate: str, array: Any, hint: str = "w") -> SSAValue:
        """x `predicate` array, as i1."""
        return self.builder(CompareOp, x, self.constant(x, array, hint), predicate=predicate)

    def where(self, condition: SSAValue, x: SSAValue, array: Any, hint: str = "w") -> SSAValue:
        """`array` where the condition holds, else x."""
        return self.builder(WhereOp, condition, self.constant(x, array, hint), x)

    # Shapes

    def columns(self, x: SSAValue, numbers: Sequence[int] | Array) -> SSAValue:
        """Columns of x by number; x itself if they are all of it, in order."""
        picked = np.asarray(numbers, np.int64)
        if picked.shape == (self.width(x),) and (picked == np.arange(len(picked))).all():
            return x
        y = self.builder(GatherOp, x, self.builder.constant(picked, "columns"), axis=1)
        self.words.picked(x, y, picked.tolist())
        if x in self.types:
            chosen: list[int] = picked.tolist()
            self.types[y] = tuple(self.types[x][c] for c in chosen)
        return self.of_form(y, self.forms.get(x))

    def concat(self, parts: Sequence[SSAValue]) -> SSAValue:
        """Side by side, in the common dtype as NumPy has it."""
        if len(parts) == 1:
            return parts[0]
        dtype = np.result_type(*(self.dtype(p) for p in parts))
        wide = self.builder(ConcatOp, *(self.cast(p, dtype) for p in parts), axis=1)
        return self.of_form(wide, side_by_side([self.forms.get(p, Form.DENSE) for p in parts]))

    def flat(self, y: SSAValue) -> SSAValue:
        """rows×1 as rows."""
        return self.builder(ReshapeOp, y, shape=[DYNAMIC])

    def column(self, y: SSAValue) -> SSAValue:
        """rows as rows×1."""
        return self.builder(ReshapeOp, y, shape=[DYNAMIC, 1])

    def reduce(self, kind: str, x: SSAValue, keepdims: bool = True) -> SSAValue:
        """Over the columns."""
        return self.builder(ReduceOp, x, kind=kind, axes=[1], keepdims=keepdims)

    def full(self, x: SSAValue, value: float, dtype: Any) -> SSAValue:
        """rows×1 of `value`."""
        first = self.columns(x, [0])
        same = self.builder(CompareOp, first, first, predicate="eq")
        constant = self.builder.constant(np.full((1, 1), value, dtype), "full")
        return self.builder(WhereOp, same, constant, constant)

    # What is refused when a program runs

    def require(self, holds: SSAValue, message: str) -> None:
        """Rows for which a column of `holds` (rows×columns of i1) is false are an error."""
        as_number = self.builder(CastOp, holds, to=f32)
        self.checks.setdefault(message, []).append(as_number)

    def require_finite(self, x: SSAValue, name: str, nan: bool, infinite: bool) -> None:
        """Refuse rows of x that a step which takes `nan` and `infinite` or not does not take."""
        known = self.known.get(x, Values())
        # Elements that are no floats are always finite.
        if self.dtype(x).kind != "f":
            return
        if known.infinite and not infinite:
            finite = self.compare(
                self.builder(AbsOp, x), "le", np.finfo(self.dtype(x)).max, "largest"
            )
            if nan:
                finite = self.builder(OrOp, finite, self.builder(IsNanOp, x))
            what = "infinity" if nan else "NaN or infinity"
            self.require(finite, f"{what} reaches {name}, which does not accept it")
        elif known.nan and not nan:
            number = self.builder(CompareOp, x, x, predicate="eq")
            self.require(number, f"NaN reaches {name}, which does not accept it")

    def check_outputs(self) -> list[tuple[str, SSAValue, str]]:
        """Name, value (rows, 1 or 0) and message of each check."""
        return [
            (f"check_{number}", self.reduce("min", self.concat(parts), keepdims=False), message)
            for number, (message, parts) in enumerate(self.checks.items())
        ]


def kind_of(step: Any) -> str:
    """Class name of one of scikit-learn's own estimators; with its module for any other class."""
    cls = cast(type[object], type(step))
    own = cls.__module__.partition(".")[0] == "sklearn"
    return cls.__name__ if own else f"{cls.__module__}.{cls.__qualname__}"


def element(dtype: Any) -> Attribute:
    """IR element type of a dtype or its name."""
    return element_type(np.dtype(dtype))
