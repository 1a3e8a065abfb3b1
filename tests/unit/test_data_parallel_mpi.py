"""Steps of training on two processes, by MPI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_data_parallel import X, Y, made

HERE = Path(__file__).parent
MPIEXEC = Path(sys.executable).with_name("mpiexec")

pytestmark = pytest.mark.skipif(
    find_spec("mpi4py") is None or not MPIEXEC.exists(),
    reason="MPI is not installed: pip install irkit[dist]",
)


def ranks(started: int, wanted: int, folder: Path) -> list[dict[str, Any]]:
    """What each process that `mpiexec` starts says, in the order of ranks."""
    paths = [str(HERE), str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")]
    own = [sys.executable, HERE / "data_parallel_rank.py", str(wanted), folder]
    ran = subprocess.run(
        [MPIEXEC, "-n", str(started), *own],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert ran.returncode == 0, ran.stderr
    found = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    assert len(found) == started
    return sorted(found, key=lambda told: told.get("rank", 0))


def test_two_processes_do_what_one_does_with_the_joined_batch(tmp_path: Path) -> None:
    one = made()
    wanted = [float(one(X, Y)) for _ in range(5)]
    first, second = ranks(2, 2, tmp_path)
    assert first["losses"] == second["losses"]
    assert first["digest"] == second["digest"]
    np.testing.assert_allclose(first["losses"], wanted, rtol=1e-5)
    for told in (first, second):
        assert "the inputs of ranks are not of the same shapes" in told["refused"]


def test_another_number_of_processes_is_refused(tmp_path: Path) -> None:
    for told in ranks(2, 3, tmp_path):
        assert "a group of 3 ranks: MPI has 2" in told["refused"]
