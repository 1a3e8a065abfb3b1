"""Constants that an rOperator's blocks ask for before they may begin: no kernel writes them.

In mode `per-op` while the kernel ahead still runs, in `persistent` while others are waited for. By then they
are on their way from memory to the cache that all blocks share, or there.
"""

from __future__ import annotations

from collections.abc import Sequence

from irkit.schedule.tables import CONSTANTS, Appended, Program

_LEAST, _MOST = 16 * 1024, 16 * 1024 * 1024
"""Bytes of the constants of a launch: fewer arrive at once, more would drive each other out of the cache."""
_UNIT = 16


def constants_ahead(program: Program) -> list[tuple[int, ...]]:
    """Of each kernel, bytes to ask for of each operand: 0 of what is not a constant in all its launches."""
    sizes = {at: size for _, at, size in program.constants if at % _UNIT == 0}
    launches: list[list[Appended]] = [[] for _ in program.kernels]
    for plan in program.plans:
        for append in plan.appends:
            launches[append.kernel].append(append)
    return [_of_kernel(appends, sizes) for appends in launches]


def _of_kernel(appends: Sequence[Appended], sizes: dict[int, int]) -> tuple[int, ...]:
    found = [[_bytes(append, i, sizes) for i in range(len(append.operands))] for append in appends]
    least = tuple(min(of) for of in zip(*found, strict=True))
    return least if _LEAST <= sum(least) <= _MOST else (0,) * len(least)


def _bytes(append: Appended, operand: int, sizes: dict[int, int]) -> int:
    base, offset, per_row = append.operands[operand]
    if base != CONSTANTS or per_row:
        return 0
    return sizes.get(offset, 0) // _UNIT * _UNIT
