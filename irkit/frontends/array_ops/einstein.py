"""Einstein's sums: two operands are one matrix product over what they share, or a product by element."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irkit.dialects.graph.composition import Ops
from irkit.dialects.types import DYNAMIC
from irkit.errors import UnsupportedError
from irkit.frontends.array_ops.products import matmul

_ELLIPSIS = "..."
# Names of the dimensions that an ellipsis stands for: no letters of an equation.
_UNNAMED = "0123456789"


def einsum(o: Ops[Any], equation: str, operands: Sequence[Any]) -> Any:
    """The result of an equation such as "bij,bjk->bik": operands are taken from the left, two at a time.

    A letter that is twice in one operand is its diagonal, and an extent of 1 is that of whoever has more.
    Without "->" the result has what ellipses stand for, then the letters that occur once, in their order.
    Raises ValueError for an equation that is none, or does not fit the operands; UnsupportedError.
    """
    inputs, output = _terms(equation, [len(o.shape(x)) for x in operands])
    terms = [_diagonal(o, letters, x) for letters, x in zip(inputs, operands, strict=True)]
    terms = _broadcast(o, terms)
    known, x = terms[0]
    for number in range(1, len(terms)):
        later = {*output, *"".join(letters for letters, _ in terms[number + 1 :])}
        known, x = _joined(o, (known, x), terms[number], later)
    known, x = _summed(o, known, x, {*output})
    return o.transpose(x, [known.index(letter) for letter in output])


def _terms(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The letters of each operand's dimensions, and of the result's; what `...` stands for has digits."""
    left, arrow, output = equation.replace(" ", "").partition("->")
    given = left.split(",")
    if len(given) != len(ranks):
        raise ValueError(f"einsum '{equation}' is of {len(given)} operands, not of {len(ranks)}")
    inputs = [_named(letters, rank) for letters, rank in zip(given, ranks, strict=True)]
    joined = "".join(inputs)
    most = max((len(_unnamed(i)) for i in inputs), default=0)
    unnamed = _UNNAMED[len(_UNNAMED) - most :] if most else ""
    if not arrow:
        once = sorted(c for c in {*joined} - {*_UNNAMED} if joined.count(c) == 1)
        return inputs, unnamed + "".join(once)
    output = output.replace(_ELLIPSIS, unnamed)
    if missing := {*output} - {*joined}:
        raise ValueError(f"einsum '{equation}': '{min(missing)}' is in no operand")
    if len({*output}) != len(output):
        raise ValueError(f"einsum '{equation}': the result has a dimension twice")
    return inputs, output


def _named(letters: str, rank: int) -> str:
    """With digits in place of an ellipsis, which broadcasts from its last dimension on."""
    head, found, tail = letters.partition(_ELLIPSIS)
    unnamed = rank - len(head) - len(tail)
    named = head + tail
    if "." in named or any(not c.isalpha() for c in named):
        raise ValueError(f"einsum: '{letters}' is not made of letters and one '...'")
    if unnamed < 0 or (unnamed and not found):
        raise ValueError(f"einsum: '{letters}' does not fit an operand of {rank} dimensions")
    if unnamed > len(_UNNAMED):
        raise UnsupportedError(f"einsum: an ellipsis of {unnamed} dimensions")
    return head + _UNNAMED[len(_UNNAMED) - unnamed :] + tail if unnamed else named


def _unnamed(letters: str) -> str:
    return "".join(c for c in letters if c in _UNNAMED)


def _diagonal(o: Ops[Any], letters: str, x: Any) -> tuple[str, Any]:
    """An operand of which no dimension is named twice: where one is, its diagonal."""
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            shape = o.shape(x)
            extent, rest = shape[first], [d for d in range(len(shape)) if d not in (first, second)]
            if extent != shape[second]:
                raise ValueError(f"einsum: index '{letter}' is of {extent} and {shape[second]}")
            if extent == DYNAMIC:
                raise UnsupportedError(f"einsum: the diagonal '{letter}' of an open dimension")
            x = o.transpose(x, [*rest, first, second])
            kept = [shape[d] for d in rest]
            x = o.reshape(x, [*kept, extent * extent])
            x = o.cut(x, len(kept), 0, extent, extent + 1)
            letters = "".join(letters[d] for d in rest) + letter
    return letters, x


def _broadcast(o: Ops[Any], terms: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Operands without the dimensions of 1 in which others have more."""
    extents: dict[str, int] = {}
    for letters, x in terms:
        for letter, extent in zip(letters, o.shape(x), strict=True):
            known = extents.setdefault(letter, extent)
            if extent not in (known, 1) and known != 1:
                raise ValueError(f"einsum: index '{letter}' is of {known} and {extent}")
            extents[letter] = extent if known == 1 else known
    found: list[tuple[str, Any]] = []
    for letters, x in terms:
        kept = [c for c, n in zip(letters, o.shape(x), strict=True) if n == extents[c]]
        found.append(("".join(kept), o.reshape(x, [extents[c] for c in kept])))
    return found


def _summed(o: Ops[Any], letters: str, x: Any, kept: set[str]) -> tuple[str, Any]:
    """Without the dimensions that nothing else has."""
    gone = [d for d, letter in enumerate(letters) if letter not in kept]
    if not gone:
        return letters, x
    return "".join(letter for letter in letters if letter in kept), o.reduce(x, "sum", gone)


def _joined(
    o: Ops[Any], left: tuple[str, Any], right: tuple[str, Any], later: set[str]
) -> tuple[str, Any]:
    """The product of two, summed over what only they have: dimensions in common lead, as in a batch."""
    names_a, a = _summed(o, *left, later | {*right[0]})
    names_b, b = _summed(o, *right, later | {*left[0]})
    sizes = dict(zip(names_a + names_b, o.shape(a) + o.shape(b), strict=True))

    shared = [letter for letter in names_a if letter in names_b]
    batch = [letter for letter in shared if letter in later]
    inside = [letter for letter in shared if letter not in later]
    rows = [letter for letter in names_a if letter not in shared]
    columns = [letter for letter in names_b if letter not in shared]
    if any(sizes[letter] == DYNAMIC for letter in columns):
        return _joined(o, (names_b, b), (names_a, a), later)
    # An open batch leads, by itself: what rows of it are made one dimension with would not be.
    opened = [letter for letter in (*batch, *rows) if sizes[letter] == DYNAMIC]
    batch = [letter for letter in batch if letter not in opened]
    if batch or len(rows) > 1:
        rows = [letter for letter in rows if letter not in opened]
    groups = [[letter] for letter in opened if letter not in rows]
    groups += [batch] if batch else []

    def grouped(x: Any, names: str, *last: list[str]) -> Any:
        kept = [group for group in groups if all(letter in names for letter in group)]
        order = [names.index(letter) for group in (*kept, *last) for letter in group]
        extents = [_extent(sizes, group) for group in (*kept, *last)]
        return o.reshape(o.transpose(x, order), extents)

    if inside or o.dtype(a) == np.bool_:
        y = matmul(o, grouped(a, names_a, rows, inside), grouped(b, names_b, inside, columns))
    else:
        y = o.mul(grouped(a, names_a, rows, []), grouped(b, names_b, [], columns))
    result = [*itertools.chain(*groups), *rows, *columns]
    return "".join(result), o.reshape(y, [sizes[letter] for letter in result])


def _extent(sizes: dict[str, int], letters: Sequence[str]) -> int:
    extents = [sizes[letter] for letter in letters]
    return DYNAMIC if DYNAMIC in extents else math.prod(extents)
