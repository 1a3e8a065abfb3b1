"""Products with weights of 4 bits against ONNX Runtime's MatMulNBits, on one thread and on all.

    python -m benchmarks.nbits [part of a name ...] [--out FOLDER]

Weights are random, quantised by ONNX Runtime's own function, without zero points. Beside irkit's program
stand its program of the same weights in float32, ONNX Runtime in float32 (accuracy_level 0) and, which is
less exact and no peer of the same answer, on activations of 8 bits (accuracy_level 4).
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np

import irkit
from benchmarks import harness
from benchmarks.quantised import session

SIZES, BLOCKS, ROWS = ((1024, 1024), (4096, 1024), (4096, 4096)), (32, 128), (1, 4, 16, 64)
CASES = {
    f"{m}x{k}x{n} block {block}": (m, k, n, block)
    for k, n in SIZES
    for block in BLOCKS
    for m in ROWS
}


def weights(k: int, n: int, block: int) -> tuple[Any, Any]:
    """Packed bytes and scales of random weights."""
    native = harness.peer("onnxruntime.capi._pybind_state")
    w = np.random.default_rng(2).standard_normal((k, n), dtype=np.float32)
    packed = np.zeros((n, k // block, block // 2), np.uint8)
    scales, zeros = np.zeros((n, k // block), np.float32), np.zeros((n, k // block), np.uint8)
    native.quantize_matmul_4bits(packed, w, scales, zeros, block, n, k, True)
    return packed, scales


def model(node: Any, m: int, k: int, n: int, arrays: dict[str, Any]) -> Any:
    """A model of one node."""
    onnx = harness.peer("onnx")
    helper = onnx.helper
    known = [harness.peer("onnx.numpy_helper").from_array(a, name) for name, a in arrays.items()]
    x, y = (helper.make_tensor_value_info(v, 1, [m, s]) for v, s in (("x", k), ("y", n)))
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "g", [x], [y], known)
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def models(case: tuple[int, int, int, int]) -> dict[str, Any]:
    """The product in 4 bits, by level of accuracy, and in float32."""
    m, k, n, block = case
    helper = harness.peer("onnx").helper
    packed, scales = weights(k, n, block)
    integers = np.stack([packed & 15, packed >> 4], axis=-1).reshape(n, k).astype(np.float32)
    floats = (integers - np.float32(8)) * np.repeat(scales, block, axis=1)
    found = {
        f"level {level}": model(
            helper.make_node(
                "MatMulNBits", ["x", "b", "s"], ["y"], domain="com.microsoft", K=k, N=n, bits=4,
                block_size=block, accuracy_level=level,
            ),
            m, k, n, {"b": packed, "s": scales},
        )
        for level in (0, 4)
    }  # fmt: skip
    plain = helper.make_node("MatMul", ["x", "w"], ["y"])
    return {**found, "floats": model(plain, m, k, n, {"w": np.ascontiguousarray(floats.T)})}


def timed(case: tuple[int, int, int, int]) -> dict[str, Any]:
    """One product, on one thread and on all that there are."""
    m, k, _, _ = case
    protos = models(case)
    x = np.random.default_rng(1).standard_normal((m, k), dtype=np.float32)
    found: dict[str, Any] = {}
    for threads in sorted({1, len(os.sched_getaffinity(0))}):
        ours = {
            "irkit": irkit.compile(protos["level 0"], device=f"cpu{threads}"),
            "irkit float32": irkit.compile(protos["floats"], device=f"cpu{threads}"),
        }
        for program in ours.values():
            for _ in range(12):  # `auto` tries its modes on the first calls
                program(x)
        peers = {
            "ONNX Runtime": session(protos["level 0"], threads),
            "ONNX Runtime, 8-bit activations": session(protos["level 4"], threads),
        }
        runs: dict[str, Any] = {name: (lambda p=p: p(x)) for name, p in ours.items()}
        runs |= {name: (lambda p=p: p.run(None, {"x": x})) for name, p in peers.items()}
        want = peers["ONNX Runtime"].run(None, {"x": x})[0]
        off = harness.largest_error(ours["irkit"](x), want) / max(float(np.abs(want).max()), 1e-30)
        found[f"{threads} threads"] = harness.gated(off, 1e-5, lambda r=runs: harness.in_blocks(r))
    return found


def main(arguments: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.nbits", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("names", nargs="*", help="parts of names; all by default")
    parser.add_argument("--out", type=Path, default=None, help="folder for nbits.json")
    options = parser.parse_args(arguments)
    chosen = [n for n in CASES if not options.names or any(p in n for p in options.names)]
    suites: dict[str, Any] = {}
    for name in chosen:
        suites[name] = timed(CASES[name])
        harness.show(name, suites[name])
    print(harness.write("nbits", {"suites": suites}, options.out))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
