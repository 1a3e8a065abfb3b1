"""Blocks that share an rTask are compiled so that several fit on a multiprocessor."""

from __future__ import annotations

import re

import pytest

from irkit.runtime.cuda import together
from irkit.runtime.cuda.together import assembled, side_by_side

PTX = "".join(
    f".visible .entry {name}(\n.param .u64 {name}_0\n)\n.maxntid 256, 1, 1\n.minnctapersm 1\n{{ }}\n"
    for name in ("op_0", "op_1", "op_12")
)


class Assembler:
    """Says what registers and stack entries take, by how many blocks are to fit."""

    def __init__(self, used: dict[str, dict[int, tuple[int, int]]]) -> None:
        self.used, self.asked = used, list[dict[str, int]]()

    def __call__(self, ptx: str, arch: str) -> tuple[bytes, str]:
        found = re.findall(r"\.entry (\w+)\(.*?minnctapersm (\d+)", ptx, re.S)
        asked = {name: int(blocks) for name, blocks in found}
        self.asked.append(asked)
        lines: list[str] = []
        for name, blocks in asked.items():
            registers, stack = self.used.get(name, {}).get(blocks, (40, 0))
            lines.append(
                f"Compiling entry function '{name}' for 'sm_90a'\n {stack} bytes stack frame, "
                f"{stack} bytes spill stores\n Used {registers} registers"
            )
        return repr(asked).encode(), "\n".join(lines)


def test_what_a_module_asks_for() -> None:
    text = "x = 1\nLAUNCH = {'arch': 'sm_90a', 'side_by_side': (3, 1, 2)}\n"
    assert side_by_side(text) == {"op_0": 3, "op_2": 2}
    assert side_by_side("LAUNCH = {'arch': 'sm_90a'}\n") == side_by_side("") == {}


@pytest.mark.parametrize(
    ("of_three", "of_two", "want", "times"),
    [
        (
            (80, 24),
            (128, 0),
            3,
            2,
        ),  # A little that is stored costs less than blocks that have no room.
        ((80, 120), (128, 0), 2, 3),
        ((80, 120), (128, 64), 1, 3),
    ],
)
def test_as_many_blocks_as_leave_registers_enough(
    monkeypatch: pytest.MonkeyPatch,
    of_three: tuple[int, int],
    of_two: tuple[int, int],
    want: int,
    times: int,
) -> None:
    fake = Assembler({"op_1": {1: (132, 0), 3: of_three, 2: of_two}})
    monkeypatch.setattr(together, "assemble", fake)
    _, code, _ = assembled(PTX, {"op_1": 3, "op_7": 3}, 256, "sm_90a")
    assert code == repr({"op_0": 1, "op_1": want, "op_12": 1}).encode()
    assert len(fake.asked) == times


def test_where_they_fit_anyway_nothing_is_assembled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Assembler({"op_0": {1: (85, 0)}, "op_1": {1: (128, 8)}})
    monkeypatch.setattr(together, "assemble", fake)
    ptx, _, _ = assembled(PTX, {"op_0": 3, "op_1": 2}, 256, "sm_90a")
    assert (ptx, len(fake.asked)) == (PTX, 1)


def test_each_entry_has_its_own_number(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Assembler({"op_1": {1: (200, 0)}, "op_12": {1: (200, 0), 3: (80, 400), 2: (128, 0)}})
    monkeypatch.setattr(together, "assemble", fake)
    assembled(PTX, {"op_1": 3, "op_12": 3}, 256, "sm_90a")
    assert fake.asked[-1] == {"op_0": 1, "op_1": 3, "op_12": 2}
