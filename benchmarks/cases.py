"""What the suite of workloads measures: works by batch and by precision, and sets of them by name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

WORKS = (
    *("W1", "W1-29", "W1-grouped", "W3", "W4", "W5", "W7", "NASRNN"),
    *("encoder", "decoder", "BERT", "LSTM", "ResNet-50", "ResNeXt-29"),
)
PRECISIONS = ("float32", "tf32", "bf16")


@dataclass(frozen=True)
class Case:
    """A workload for so many rows, its products in a precision.

    In "bf16" PyTorch's weights and values are of bfloat16, in "tf32" of float32.
    """

    work: str
    batch: int = 1
    precision: str = "float32"

    @staticmethod
    def parse(text: str) -> Case:
        """ "LSTM", "LSTM@16", "W4@tf32" or "ResNet-50@16:bf16". Raises ValueError."""
        name, *more = re.split("[@:]", text)
        work = next((w for w in WORKS if w.lower() == name.lower()), None)
        if work is None:
            raise ValueError(f"unknown work '{name}': expected {', '.join((*WORKS, *SETS))}")
        batch, precision = 1, "float32"
        for part in more:
            if part in PRECISIONS:
                precision = part
            elif part.isdecimal() and int(part) > 0:
                batch = int(part)
            else:
                expected = f"expected rows, or one of {', '.join(PRECISIONS)}"
                raise ValueError(f"'{part}' in '{text}': {expected}")
        return Case(work, batch, precision)

    @property
    def label(self) -> str:
        """As it is parsed, without what it is anyway."""
        rows = f"@{self.batch}" if self.batch != 1 else ""
        return self.work + rows + ("" if self.precision == "float32" else f":{self.precision}")


def _images(*batches: int) -> tuple[str, ...]:
    return tuple(
        f"{name}@{batch}:{precision}"
        for batch in batches
        for name in ("ResNet-50", "ResNeXt-29")
        for precision in PRECISIONS
    )


SETS = {
    "batch-1": ("W1", "W3", "W4", "W5", "W7", "W1-29", "NASRNN"),
    "transformers": ("encoder", "decoder", "BERT", "BERT:bf16"),
    "recurrent": ("LSTM@4", "LSTM@16", "LSTM@64"),
    "images-1": ("W4:tf32", *_images(1)),
    "images-16": _images(16),
    "images-64": _images(64),
}


def cases(names: Iterable[str]) -> list[Case]:
    """The cases of names and of sets, each once. Raises ValueError."""
    found = [Case.parse(text) for name in names for text in SETS.get(name, (name,))]
    return list(dict.fromkeys(found))
