"""The examples run, in processes of their own: what they add to irkit stays with them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import irkit
from irkit import extending
from irkit.runtime import side_by_side

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder of their own: what serves all programs is compiled by the first."""
    return str(tmp_path_factory.mktemp("cache"))


@pytest.mark.parametrize(
    "name",
    [
        "expression",
        "new_op",
        "new_pass",
        "own_device",
        "own_family",
        "own_policy",
        "own_rkernel",
        "own_tensor_op",
        "streaming",
        "training_digits",
        "training_physics --rounds 100",
        "training_text --steps 90 --width 32 --blocks 1",
    ],
)
def test_example(name: str, cache: str) -> None:
    name, *arguments = name.split()
    # No more workers than this process would have.
    workers = str(side_by_side.MOST_WORKERS)
    environment = {**os.environ, "IRKIT_CACHE_DIR": cache, "IRKIT_COMPILE_WORKERS": workers}
    command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), *arguments]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_parse_says_what_is_wrong_where():
    with pytest.raises(irkit.InvalidModelError, match=r"net.mlir:1:6: unknown op 'graph.rleu'"):
        irkit.parse("%y = graph.rleu %x", "net.mlir")


def test_names_that_are_taken():
    from xdsl.ir import Dialect

    from irkit.passes.graph.fold_constants import FoldConstants

    with pytest.raises(irkit.UnsupportedError, match="dialect 'graph': there is one"):
        extending.add_dialect(Dialect("graph", [], []), {}, {})
    with pytest.raises(irkit.UnsupportedError, match="pass 'fold-constants': there is one"):
        extending.add_pass(FoldConstants)


def test_policies_are_named():
    module = irkit.parse(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {return %x : tensor<4xf32>}"
    )
    with pytest.raises(irkit.UnsupportedError, match=r"policy 'fastest': expected .*wavefront"):
        irkit.compile(module, policy="fastest")
