"""Seconds by name, and a table of them."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager


class Timer:
    """Adds up seconds by name, in order of first use."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Generator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            took = time.perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + took

    def table(self) -> str:
        """One line per name: milliseconds, share of the total."""
        total = sum(self.seconds.values())
        rows = [*self.seconds.items(), ("total", total)]
        lines = ["===- execution time -===", "        ms       %  name"]
        for name, seconds in rows:
            share = 100.0 * seconds / total if total else 0.0
            lines.append(f"{1e3 * seconds:10.2f}  {share:5.1f}%  {name}")
        return "\n".join(lines) + "\n"
