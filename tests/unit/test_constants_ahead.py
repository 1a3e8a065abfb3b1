"""Constants that blocks ask for before they may begin."""

from __future__ import annotations

from dataclasses import replace

from test_cuda_calls import TWICE

from irkit.lower.task_to_numba import walkers_cuda
from irkit.lower.task_to_numba.ahead_cuda import constants_ahead
from irkit.lower.task_to_numba.dispatch_cuda import Kernel
from irkit.schedule.tables import ARENA, CONSTANTS, Appended, Operand, Program

LARGE, SMALL = 1 << 20, 64
NAMES = (("w", 0, LARGE), ("v", LARGE, LARGE // 2), ("b", 2 * LARGE, SMALL))


def program(*launches: tuple[int, ...]) -> Program:
    """Launches of one rOperator, by where its operands lie among the constants; -1: elsewhere."""
    appends = [
        Appended(
            0, 2, 0, 2, n, (),
            tuple(Operand(ARENA, 0) if at < 0 else Operand(CONSTANTS, at) for at in operands),
        )
        for n, operands in enumerate(launches)
    ]  # fmt: skip
    return replace(
        TWICE,
        appends=tuple(appends),
        kernels=("op",),
        constants=NAMES,
        constant_bytes=2 * LARGE + SMALL,
    )


def test_what_is_a_constant_in_every_launch_is_asked_for() -> None:
    assert constants_ahead(program((-1, 0, 2 * LARGE))) == [(0, LARGE, SMALL)]
    # The same kernel with other weights: no more than the smaller of them.
    assert constants_ahead(program((-1, 0), (-1, LARGE))) == [(0, LARGE // 2)]
    assert constants_ahead(program((-1, 0), (0, -1))) == [(0, 0)]


def test_few_bytes_are_not_asked_for() -> None:
    assert constants_ahead(program((-1, 2 * LARGE))) == [(0, 0)]
    # Not the start of a constant: how far it goes is not known.
    assert constants_ahead(program((-1, 16))) == [(0, 0)]
    assert constants_ahead(replace(program(), kernels=("op",))) == [()]


def test_a_kernel_asks_before_it_waits_and_a_veu_while_it_waits() -> None:
    text = walkers_cuda.op_kernel(0, Kernel("f", ["float32"] * 2, 0), early=True, ahead=(0, LARGE))
    lines = [line.strip() for line in text.splitlines()]
    asked = lines.index(f"fetch_ahead(a1, {LARGE}, block_index(), block_count())")
    assert asked < lines.index("await_previous()")
    assert "fetch_ahead(a0" not in text
    layout = walkers_cuda.layout_of(program((-1, 0)))
    asking = walkers_cuda.walkers(layout, ahead=[(0, LARGE)])
    assert "resolve_and_ask(words, rows_padded)" in asking
    assert f"if kernel == 0 and operand == 1:\n        return {LARGE}" in asking
    assert "resolve_and_ask" not in walkers_cuda.walkers(layout, ahead=[(0, 0)])
