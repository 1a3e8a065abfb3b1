"""Threads that compile for a GPU import Numba's modules one after another."""

from __future__ import annotations

import sys
import threading
from itertools import pairwise
from pathlib import Path

import pytest

from irkit.runtime.cuda.numba_device import of_numba

SLOW = """
import time
began = time.perf_counter()
time.sleep(0.1)
ended = time.perf_counter()
"""


def test_no_import_begins_before_another_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"slow_module_{n}" for n in range(4)]
    for name in names:
        (tmp_path / f"{name}.py").write_text(SLOW)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    threads = [threading.Thread(target=of_numba, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = [sys.modules.pop(name) for name in names]
    spans = sorted((module.began, module.ended) for module in made)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
