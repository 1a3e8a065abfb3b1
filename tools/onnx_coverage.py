"""Run ONNX's own tests against irkit's backend on the CPU; write what passes, and why not, down.

.venv/bin/python tools/onnx_coverage.py            rewrite the record and docs/onnx.md
.venv/bin/python tools/onnx_coverage.py softmax    show tests whose name has "softmax"
.venv/bin/python tools/onnx_coverage.py --page     rewrite docs/onnx.md from the record
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
RECORD = ROOT / "tests" / "conformance" / "onnx_backend.json"
PAGE = ROOT / "docs" / "onnx.md"
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


def outcomes(pattern: str = "") -> Iterator[tuple[str, str]]:
    """(test name, "pass", why it is refused, or "WRONG: ...")"""
    warnings.simplefilter("ignore")
    from onnx.backend.test import BackendTest

    from irkit.frontends.onnx.backend import IrkitBackend

    suite = BackendTest(IrkitBackend, __name__, test_kwargs={})
    for kind, case in sorted(suite.test_cases.items()):
        if kind == "OnnxBackendRealModelTest":
            continue
        for name in sorted(n for n in dir(case) if n.startswith("test_") and n.endswith("_cpu")):
            if pattern not in name:
                continue
            yield name, _outcome(getattr(case(name), name))


def _outcome(test: Callable[[], None]) -> str:
    from irkit.errors import IrkitError

    try:
        test()
    except IrkitError as error:
        lines = str(error).splitlines()
        return lines[1].strip(" -") if len(lines) > 1 else lines[0]
    except Exception as error:
        return f"WRONG: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return "pass"


def main(arguments: list[str]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        os.environ.setdefault("IRKIT_CACHE_DIR", scratch)
        if arguments and arguments[0] != "--page":
            for name, outcome in outcomes(arguments[0]):
                print(f"{name}: {outcome}", flush=True)
            return
        if not arguments:
            record = dict(outcomes())
            RECORD.write_text(json.dumps(record, indent=0, sort_keys=True) + "\n")
            counts = Counter(
                o if o == "pass" else o.split(":")[0][:5] == "WRONG" for o in record.values()
            )
            print(counts)


if __name__ == "__main__":
    main(sys.argv[1:])
