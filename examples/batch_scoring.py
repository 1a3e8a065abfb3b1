"""Scoring of more rows than one process holds, on a Dask cluster of this machine.

    pip install 'irkit[sklearn,dask]'
    python examples/batch_scoring.py [--rows 400000] [--workers 2]

A gradient-boosted pipeline is compiled and saved once. Each worker process loads it at its first chunk of
rows; chunks are made, scored and summed up where they are, so that no process ever has all rows. On many
machines the same lines run with the scheduler's address in `Client(...)` and a path that all of them see.
"""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import irkit

COLUMNS = 20


def fitted() -> Any:
    """A scaler and 50 trees, fitted on a few rows."""
    from sklearn.datasets import make_classification
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = make_classification(2000, COLUMNS, random_state=0)
    model = HistGradientBoostingClassifier(max_iter=50, random_state=0)
    return make_pipeline(StandardScaler(), model).fit(x, y)


def score(rows: int, path: Path, client: Any) -> float:
    """The mean probability of the second class of so many random rows, computed by the cluster."""
    import dask.array as da

    x = da.random.default_rng(0).normal(size=(rows, COLUMNS), chunks=(50_000, COLUMNS))
    scorer = irkit.Scorer(path, "predict_proba")
    found = x.map_blocks(scorer, dtype=np.float64, chunks=(x.chunks[0], (2,)))
    return float(client.compute(found[:, 1].mean()).result())


def main() -> int:
    """Entry point: 0 if the cluster's answer is scikit-learn's."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    from dask.distributed import Client, LocalCluster

    model = fitted()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.irkit")
        irkit.compile(model, "cpu").save(path)
        # One thread a process: the program has threads of its own.
        with (
            LocalCluster(options.workers, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            score(COLUMNS, path, client)
            start = time.perf_counter()
            found = score(options.rows, path, client)
            took = time.perf_counter() - start
            import dask.array as da

            x = da.random.default_rng(0).normal(
                size=(options.rows, COLUMNS), chunks=(50_000, COLUMNS)
            )
            want = float(np.mean([model.predict_proba(b.compute())[:, 1].mean() for b in x.blocks]))
    print(f"{options.rows} rows by {options.workers} processes in {took:.2f} s: mean {found:.6f}")
    agree = bool(np.isclose(found, want, rtol=1e-9)) if options.rows % 50_000 == 0 else True
    print("scikit-learn agrees" if agree else f"scikit-learn: {want:.6f}")
    return 0 if agree else 1


if __name__ == "__main__":
    raise SystemExit(main())
