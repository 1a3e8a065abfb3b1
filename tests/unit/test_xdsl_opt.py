"""Plain xdsl-opt sees irkit's dialects and passes; what needs weights says so in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RUN = "import sys; from xdsl.tools.xdsl_opt import main; main()"
TEXT = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = graph.reshape %x {shape = array<i64: 4>} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
"""


def xdsl_opt(path: Path, passes: str) -> subprocess.CompletedProcess[str]:
    path.write_text(TEXT)
    command = [sys.executable, "-W", "ignore", "-c", RUN, str(path), "-p", passes]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_passes_without_weights_run(tmp_path: Path):
    done = xdsl_opt(tmp_path / "m.mlir", "canonicalize,unroll-recurrence")
    assert (done.returncode, done.stderr) == (0, "")
    assert "graph.reshape" not in done.stdout


def test_passes_that_read_weights_say_so_in_one_line(tmp_path: Path):
    done = xdsl_opt(tmp_path / "m.mlir", "fold-constants")
    assert done.returncode == 1
    assert done.stderr.strip() == (
        "error: this pass reads weights, which xdsl-opt has none of: run it with irkit-opt"
    )
