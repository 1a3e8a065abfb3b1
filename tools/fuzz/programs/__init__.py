"""Random graph-level programs of all ops, element types and ranks; see `program.py` and `facts.py`."""

from __future__ import annotations

from tools.fuzz.programs import elementwise, layers, moving, reducing, windows
from tools.fuzz.programs.program import RandomProgram, Step

# Views are as frequent as all arithmetic: what broke was what stood on them.
STEPS: list[Step] = [
    *elementwise.STEPS, *moving.STEPS, *reducing.STEPS, *windows.STEPS, *layers.STEPS,
]  # fmt: skip


def random_program(seed: int, size: int, batch: bool) -> RandomProgram:
    """The program of `seed`: about `size` ops, on a batch of any number of rows if `batch`."""
    return RandomProgram(seed, size, batch, STEPS)
