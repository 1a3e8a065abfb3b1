"""Slices whose length changes from round to round of a loop: `x[:i]`, `a[i:, i + 1:]`.

Such an array is all that the slice is in any round, and a span of its places along an axis that are in this
one. It can be computed with, written, multiplied and summed up: what is outside of the span is computed too,
and never seen. What else is asked of it is answered for the round at hand, which then stands for no other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from irkit.dialects.extremes import greatest, least
from irkit.dialects.graph import AndOp, CompareOp, WhereOp
from irkit.frontends.numpy.arrays import TracedArray, Varying, fresh, is_traced, value_of
from irkit.frontends.numpy.carrying import begun
from irkit.frontends.numpy.indices import Index, index
from irkit.frontends.numpy.library import LIBRARY
from irkit.frontends.numpy.operands import operand
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.records import Value
from irkit.frontends.numpy.spans import Span, Spans, moves, span_of, without_ellipsis

WHY = "{} of a slice whose length changes from round to round"


class VaryingArray(Varying, NDArrayOperatorsMixin):
    """`full` has the places of all rounds; along the axes of `spans` some of them are this round's."""

    def __init__(self, full: TracedArray, spans: Spans) -> None:
        self.full, self.held = full, dict(spans)

    @property
    def spans(self) -> dict[int, Span]:
        """Places of this round, by axis."""
        return {axis: span.settled for axis, span in self.held.items()}

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of its elements."""
        return self.full.dtype

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return self.full.ndim

    @property
    def shape(self) -> tuple[Any, ...]:
        """Extents; indices of loops, where they vary."""
        lengths = {a: s.high.plus(s.low, -1) for a, s in self.spans.items()}
        if any(length.extent()[0] < 0 for length in lengths.values()):
            return self.exact("the shape").shape
        sizes = enumerate(self.full.shape)
        return tuple(index(lengths[a]) if a in lengths else size for a, size in sizes)

    @property
    def T(self) -> VaryingArray:
        """Its axes turned round."""
        last = self.ndim - 1
        return VaryingArray(self.full.T, {last - a: s for a, s in self.held.items()})

    def exact(self, what: str = "an operation") -> TracedArray:
        """It as it is in this round, which then stands for no other."""
        for span in self.spans.values():
            for symbol, _ in (*span.low.terms, *span.high.terms):
                symbol.special = symbol.special or WHY.format(what)
        keys = [self.held[a].now if a in self.held else slice(None) for a in range(self.ndim)]
        return self.full[tuple(keys)]

    def mask(self) -> Value:
        """Which elements of `full` are this round's."""
        r, found = recorder(), None
        for axis, span in self.spans.items():
            shape = [1] * self.ndim
            shape[axis] = self.full.shape[axis]
            places = r.constant(np.arange(shape[axis], dtype=np.int64).reshape(shape))
            low = r.op(CompareOp, places, r.counter(span.low), predicate="ge")
            high = r.op(CompareOp, places, r.counter(span.high), predicate="lt")
            inside = r.op(AndOp, low, high)
            found = inside if found is None else r.op(AndOp, found, inside)
        assert found is not None
        return r.expand(found, self.full.shape)

    def filled(self, other: Any) -> TracedArray:
        """`full`, with a number in places that are not this round's."""
        r = recorder()
        rest = r.splat(other, self.dtype, self.full.shape)
        return fresh(r.op(WhereOp, self.mask(), value_of(self.full), rest))

    # NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.get("out")
        target = out[0] if out and len(out) == 1 else None
        found = None
        if method == "__call__" and not set(kwargs) - {"out"} and ufunc.nout == 1:
            found = _product(inputs) if ufunc is np.matmul else _elementwise(ufunc, inputs)
        if found is None or (out and not _goes_to(found, target)):
            given = [exact(x, ufunc.__name__) for x in inputs]
            if out:
                kwargs["out"] = tuple(exact(x, ufunc.__name__) for x in out)
            return getattr(ufunc, method)(*given, **kwargs)
        if type(target) is not VaryingArray:
            return found
        set_varying(target, found)
        return target

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        rule = FUNCTIONS.get(func.__name__)
        found = rule(*args, **kwargs) if rule is not None else None
        if found is not None:
            return found
        given = [exact(x, f"np.{func.__name__}") for x in args]
        return func(*given, **{k: exact(v, f"np.{func.__name__}") for k, v in kwargs.items()})

    def __getattr__(self, name: str) -> Any:
        if name in METHODS:
            return _Method(name, self)
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.exact(f"ndarray.{name}"), name)

    def __getitem__(self, key: Any) -> Any:
        found = _viewed(self, _keys(key))
        return self.exact("an index")[key] if found is None else found

    def __setitem__(self, key: Any, value: Any) -> None:
        target = _viewed(self, _keys(key))
        if type(target) is VaryingArray and target.full.flags.writeable:
            set_varying(target, value)
        else:
            self.exact("an assignment")[key] = exact(value)

    def __len__(self) -> int:
        return len(self.full) if 0 not in self.held else len(self.exact("len()"))

    def __iter__(self) -> Any:
        return iter(self.exact("a loop over the elements"))

    def __bool__(self) -> bool:
        return bool(self.exact("bool()"))

    def __repr__(self) -> str:
        return f"<varying {self.full!r}>"


def exact(value: Any, what: str = "an operation") -> Any:
    """An array as it is in this round, in lists and tuples too; all else as it is."""
    if type(value) in (list, tuple):
        parts = [exact(x, what) for x in cast("list[Any]", value)]
        return parts if isinstance(value, list) else tuple(parts)
    return value.exact(what) if type(value) is VaryingArray else value


def _keys(key: Any) -> tuple[Any, ...]:
    return cast("tuple[Any, ...]", key) if isinstance(key, tuple) else (key,)


class _Method:
    def __init__(self, name: str, array: VaryingArray) -> None:
        self._name, self._array = name, array

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        found = FUNCTIONS[self._name](self._array, *args, **kwargs)
        if found is not None:
            return found
        plain = self._array.exact(f"ndarray.{self._name}")
        return getattr(plain, self._name)(*args, **kwargs)


# Views


def varying_view(
    array: TracedArray, keys: tuple[Any, ...], view: Callable[[Any], TracedArray]
) -> VaryingArray | None:
    """What `keys` see, where that is of another length in other rounds; None where it is not, or not in a way
    that a span says. `view` gives what other keys see."""
    if not any(isinstance(k, slice) and moves(cast("slice[Any]", k)) for k in keys):
        return None
    whole: list[Any] = []
    spans: dict[int, Span] = {}
    own = made = 0
    for key in without_ellipsis(keys, array.ndim):
        span = None
        if isinstance(key, slice) and own < array.ndim:
            span = span_of(cast("slice[Any]", key), array.shape[own])
        if span is not None:
            key, spans[made] = span
        whole.append(key)
        own += key is not None
        made += key is None or isinstance(key, slice)
    return VaryingArray(view(tuple(whole)), spans) if spans else None


def _viewed(array: VaryingArray, keys: tuple[Any, ...]) -> Any:
    """What keys see that leave its spans whole."""
    spans, held = dict[int, Span](), array.held
    own = made = 0
    for key in (found := without_ellipsis(keys, array.ndim)):
        whole = isinstance(key, slice) and key == slice(None)
        plain = key is None or isinstance(key, slice | int | np.integer | Index)
        if not plain or (key is not None and own in held and not whole):
            return None
        if whole and own in held:
            spans[made] = held[own]
        own += key is not None
        made += key is None or isinstance(key, slice)
    for axis in range(own, array.ndim):
        if axis in held:
            spans[made + axis - own] = held[axis]
    full = array.full[tuple(found)]
    return VaryingArray(full, spans) if spans and type(full) is TracedArray else None


# Computing


def _elementwise(ufunc: np.ufunc, inputs: Sequence[Any]) -> VaryingArray | None:
    """A ufunc of arrays that are alike along every axis that varies; None for others."""
    if ufunc.signature is not None:
        return None
    spans = common_spans(inputs)
    if spans is None:
        return None
    rank = max(_rank(x) for x in inputs)
    made: Any = ufunc(*(x.full if type(x) is VaryingArray else x for x in inputs))
    return VaryingArray(made, {a + rank: s for a, s in spans.items()})


def common_spans(inputs: Sequence[Any]) -> dict[int, Span] | None:
    """Spans of operands that are broadcast together, by axis from the last (-1); None where they differ."""
    found: dict[int, tuple[Span, int]] = {}
    for x in inputs:
        if type(x) is VaryingArray:
            for axis, span in x.spans.items():
                own = (span, x.full.shape[axis])
                if found.setdefault(axis - x.ndim, own) != own:
                    return None
    for x in inputs:
        shape = x.full.shape if type(x) is VaryingArray else operand(x).shape
        own = x.spans if type(x) is VaryingArray else {}
        for axis in found:
            at = axis + len(shape)
            if at >= 0 and at not in own and shape[at] != 1:
                return None
    return {axis: span for axis, (span, _) in found.items()}


def _rank(x: Any) -> int:
    return x.ndim if type(x) is VaryingArray else len(operand(x).shape)


def _product(inputs: Sequence[Any]) -> Any:
    """A product of matrices or vectors; None where what is summed up is not alike."""
    a, b = inputs
    if not all(_rank(x) in (1, 2) for x in inputs):
        return None
    inner = (_rank(a) - 1, 0)
    spans = [_spans(x) for x in inputs]
    summed = [own.get(at) for own, at in zip(spans, inner, strict=True)]
    if summed[0] != summed[1] or _full(a).shape[inner[0]] != _full(b).shape[0]:
        return None
    fulls = [_full(x) for x in inputs]
    if summed[0] is not None:
        # Both, as nothing says that what is outside is finite.
        fulls = [
            VaryingArray(f, {at: summed[0]}).filled(0) for f, at in zip(fulls, inner, strict=True)
        ]
    made: Any = LIBRARY.matmul(*fulls)
    kept = [own[0] for own, x in ((spans[0], a),) if _rank(x) == 2 and 0 in own]
    found: dict[int, Span] = {0: kept[0]} if kept else {}
    if _rank(b) == 2 and 1 in spans[1]:
        found[made.ndim - 1] = spans[1][1]
    return VaryingArray(made, found) if found else made


def _spans(x: Any) -> dict[int, Span]:
    return x.spans if type(x) is VaryingArray else {}


def _full(x: Any) -> Any:
    return x.full if type(x) is VaryingArray else x


def set_varying(target: VaryingArray, value: Any) -> None:
    """`target[...] = value`, in places of this round."""
    r = recorder()
    if type(value) is VaryingArray and _same_place(value, target):
        return
    spans = common_spans([target, value]) if type(value) is VaryingArray or _plain(value) else None
    inside = spans is not None and _rank(value) <= target.ndim
    inside = inside and {a + target.ndim for a in spans or ()} == {*target.held}
    if not inside:
        LIBRARY.copyto(target.exact("an assignment"), exact(value), casting="unsafe")
        return
    new = r.expand(operand(_full(value)).value(target.dtype), target.full.shape)
    begun(r, target.full.spot.buffer)
    r.write(r.op(WhereOp, target.mask(), new, value_of(target.full)), target.full.spot.view)


def _plain(value: Any) -> bool:
    return is_traced(value) or isinstance(value, int | float | np.ndarray | np.generic | Index)


def _same_place(a: VaryingArray, b: VaryingArray) -> bool:
    return a.full.spot.view == b.full.spot.view and a.spans == b.spans


def _goes_to(found: Any, target: Any) -> bool:
    """Whether a result may be written to `out`."""
    if type(found) is not VaryingArray or type(target) is not VaryingArray:
        return False
    alike = found.spans == target.spans and found.full.shape == target.full.shape
    casts = np.can_cast(found.dtype, target.dtype, "same_kind")
    return alike and casts and bool(target.full.flags.writeable)


# Reductions


def _reduction(name: str, neutral: Callable[[np.dtype[Any]], Any] | None) -> Callable[..., Any]:
    function = getattr(LIBRARY, name)

    def reduced(a: Any, axis: Any = None, **kwargs: Any) -> Any:
        if type(a) is not VaryingArray or kwargs or not isinstance(axis, int | None):
            return None
        axes = range(a.ndim) if axis is None else [axis % a.ndim]
        kept = {x - sum(y < x for y in axes): s for x, s in a.held.items() if x not in axes}
        gone = {x: s for x, s in a.spans.items() if x in axes}
        if not gone:
            return VaryingArray(function(a.full, axis=axis), kept)
        inside = VaryingArray(a.full, gone)
        if neutral is None:
            made = function(a.full, axis=axis, where=fresh(inside.mask()))
        elif name in ("max", "min") and not all(s.never_empty() for s in gone.values()):
            return None
        else:
            made = function(inside.filled(neutral(a.dtype)), axis=axis)
        return VaryingArray(made, kept) if kept else made

    return reduced


def _dot(a: Any, b: Any, out: Any = None) -> Any:
    if out is not None or 0 in (_rank(a), _rank(b)):
        return None
    return _product((a, b))


def _outer(a: Any, b: Any, out: Any = None) -> Any:
    if out is not None or _rank(a) != 1 or _rank(b) != 1:
        return None
    return a[:, None] * b[None, :]


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    spans = None if x is None or y is None else common_spans((condition, x, y))
    if spans is None:
        return None
    made = LIBRARY.where(*map(_full, (condition, x, y)))
    return VaryingArray(made, {a + made.ndim: s for a, s in spans.items()})


def _copy(a: Any, order: Any = None) -> Any:
    return VaryingArray(a.full.copy(), a.held) if order in (None, "C", "K") else None


def _astype(a: Any, dtype: Any) -> Any:
    return VaryingArray(a.full.astype(dtype), a.held)


METHODS = ("all", "any", "astype", "copy", "dot", "max", "mean", "min", "prod", "std", "sum", "var")
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **{
        name: _reduction(name, None) for name in ("all", "any", "mean", "prod", "std", "sum", "var")
    },
    "max": _reduction("max", least),
    "min": _reduction("min", greatest),
    "amax": _reduction("max", least),
    "amin": _reduction("min", greatest),
    "astype": _astype,
    "copy": _copy,
    "dot": _dot,
    "outer": _outer,
    "where": _where,
}
"""What has a form of its own; each gives None for arguments that it has none for."""


def parts_of(array: VaryingArray) -> list[Any]:
    """What it is made of, to compare rounds."""
    ends = [x for a, s in sorted(array.spans.items()) for x in (a, index(s.low), index(s.high))]
    return [array.full, *ends]
