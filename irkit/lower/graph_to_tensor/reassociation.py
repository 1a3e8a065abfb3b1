"""Which dimensions of one shape make up which dimensions of another."""

from __future__ import annotations

from collections.abc import Sequence

from irkit.dialects.types import DYNAMIC
from irkit.errors import UnsupportedError


def reassociate(have: Sequence[int], want: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Smallest runs of dimensions of `have` and `want` with equally many elements, in order.

    `have` and `want` have the same number of elements, more than none; dynamic dimensions of the two
    lead together. Neither side of a run is empty, unless that shape has no dimensions: then there is no
    run, or just one if the other has some. Raises UnsupportedError where a dynamic dimension does not lead.

    reassociate([4, 6], [2, 2, 6]) == [([0], [0, 1]), ([1], [2])]
    """
    runs: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(have) and j < len(want):
        run = ([i], [j])
        size_i, size_j = have[i], want[j]
        i, j = i + 1, j + 1
        while size_i != size_j:
            if DYNAMIC in (size_i, size_j):
                raise UnsupportedError(
                    f"reshape of {_shown(have)} to {_shown(want)}: a dynamic dimension that does not lead"
                )
            if size_i < size_j:
                size_i *= have[i]
                run[0].append(i)
                i += 1
            else:
                size_j *= want[j]
                run[1].append(j)
                j += 1
        runs.append(run)
    # What remains are ones.
    rest = (list(range(i, len(have))), list(range(j, len(want))))
    if runs:
        runs[-1][0].extend(rest[0])
        runs[-1][1].extend(rest[1])
    return runs


def _shown(shape: Sequence[int]) -> str:
    return "x".join("?" if s == DYNAMIC else str(s) for s in shape)
