"""A rank of `test_data_parallel_mpi.py`: trains on its part of a batch, and writes what came of it."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from test_data_parallel import X, Y, made, part

from irkit.errors import InvalidInputError, IrkitError
from irkit.training import groups


def main(ranks: int, folder: Path) -> None:
    """Five steps, then one of shapes that differ between ranks."""
    try:
        group = groups.mpi(ranks)
    except IrkitError as error:
        tell(folder, {"refused": str(error)})
        return
    step = made(groups.DataParallel(group, 300))
    x, y = part(X, group.rank, group.size), part(Y, group.rank, group.size)
    found = [float(step(x, y)) for _ in range(5)]
    state = step.state.arrays()
    try:
        step(x[: len(x) - group.rank], y[: len(y) - group.rank])
        refused = ""
    except InvalidInputError as error:
        refused = str(error)
    for name, array in state.items():
        np.testing.assert_array_equal(array, step.state[name])
    digest = hashlib.sha256(b"".join(a.tobytes() for a in state.values())).hexdigest()
    tell(folder, {"rank": group.rank, "losses": found, "digest": digest, "refused": refused})


def tell(folder: Path, told: dict[str, Any]) -> None:
    """Leave a file of this process."""
    (folder / f"{os.getpid()}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
