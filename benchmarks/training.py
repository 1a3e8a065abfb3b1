"""Steps of training on two threads of a CPU, beside PyTorch eager and compiled.

    python -m benchmarks.training [--steps 50] [--batch 1000] [--blocks 5] [--no-compile] [--out FOLDER]

The perceptron 784-256-100-10 with ReLU, softmax cross-entropy and plain gradient descent, float32, from the
same weights on the same data: losses of all steps are compared, and who is off by more than rounding has no
time. A time is that of a whole epoch of so many steps; candidates take turns, block by block. Beside
wall-clock times there are those of processors, which say more where others work on the machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import irkit
from benchmarks import harness
from irkit.training import losses, optimizers

SIZES = (784, 256, 100, 10)
RATE = 1e-3
ROUNDING = 1e-5
"""By how much a loss of magnitude 1 may differ, in float32, after all steps."""
NAIVE_BYTES, COURSE_BYTES = 12_702_688, 5_416_004
"""Of a step of batch 1000: one buffer a node, and the arena to be reached."""

Epoch = Callable[[], list[float]]
"""Runs all steps once more; their losses."""


def start() -> list[dict[str, np.ndarray]]:
    """The first weights."""
    rng = np.random.default_rng(0)
    return [
        {
            "w": (rng.standard_normal((a, b)) / np.sqrt(a)).astype(np.float32),
            "b": np.zeros(b, np.float32),
        }
        for a, b in pairwise(SIZES)
    ]


def perceptron(p: Any, x: Any) -> Any:
    """Logits, in NumPy."""
    for layer in p[:-1]:
        x = np.maximum(x @ layer["w"] + layer["b"], 0)
    return x @ p[-1]["w"] + p[-1]["b"]


def of_irkit(x: Any, y: Any) -> tuple[Epoch, dict[str, Any]]:
    """irkit's epoch, and what its program is."""
    step = irkit.training_step(
        perceptron,
        losses.softmax_cross_entropy,
        optimizers.SGD(RATE),
        parameters=start(),
        target="cpu",
        device="cpu2",
    )
    step.compile(x[0], y[0])
    return lambda: [float(step(*pair)) for pair in zip(x, y, strict=True)], step.report()


def of_torch(x: Any, y: Any, *, compiled: bool) -> Epoch:
    """PyTorch's epoch. Raises ImportError without it."""
    torch = harness.peer("torch")
    torch.set_num_threads(2)
    layers: list[Any] = []
    for held in start():
        layer = torch.nn.Linear(*held["w"].shape)
        layer.weight.data = torch.tensor(np.ascontiguousarray(held["w"].T))
        layer.bias.data = torch.tensor(held["b"])
        layers += [layer, torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1])
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    pairs = [(torch.tensor(a), torch.tensor(b)) for a, b in zip(x, y, strict=True)]

    def step(a: Any, b: Any) -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(a), b)
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = torch.compile(step) if compiled else step
    return lambda: [float(run(*pair)) for pair in pairs]


def candidates(x: Any, y: Any, compiled: bool) -> tuple[dict[str, Epoch], dict[str, Any]]:
    """All that can run here, and facts of irkit's program."""
    epoch, report = of_irkit(x, y)
    found = {"irkit": epoch}
    try:
        found["PyTorch"] = of_torch(x, y, compiled=False)
        if compiled:
            found["torch.compile"] = of_torch(x, y, compiled=True)
    except ImportError as error:
        print(f"without PyTorch: {error}")
    return found, report


def measured(epochs: dict[str, Epoch], blocks: int) -> dict[str, Any]:
    """Errors and times of each; of who is wrong, no times."""
    first = {name: epoch() for name, epoch in epochs.items()}
    wanted = next(reversed(first.values()))
    off = {name: harness.largest_error(found, wanted) for name, found in first.items()}
    right = {name: epoch for name, epoch in epochs.items() if off[name] <= ROUNDING}
    times = harness.in_blocks(right, blocks, 1)
    used = harness.in_blocks(right, blocks, 1, clock=time.process_time)
    found: dict[str, Any] = {name: {"wrong": off[name]} for name in epochs if name not in right}
    for name, t in times.items():
        found[name] = {**t, "max error": off[name], "processor_us": used[name]["median_us"]}
    for name in right:
        if name != "irkit":
            ratio = times["irkit"]["median_us"] / times[name]["median_us"]
            spent = used["irkit"]["median_us"] / used[name]["median_us"]
            found |= {f"time over {name}": ratio, f"processor time over {name}": spent}
    return found


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description="Steps of training beside PyTorch.")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    x = rng.standard_normal((options.steps, options.batch, SIZES[0])).astype(np.float32)
    y = rng.integers(0, SIZES[-1], (options.steps, options.batch))
    epochs, report = candidates(x, y, not options.no_compile)
    found = measured(epochs, options.blocks)
    arena = report["arena_bytes"]
    facts: dict[str, Any] = {
        "arena bytes": arena,
        "arena over its lower bound": report["arena_ratio"],
    }
    if options.batch == 1000:
        facts |= {"arena over naive": arena / NAIVE_BYTES, "arena over goal": arena / COURSE_BYTES}
    name = f"MLP, {options.steps} steps of {options.batch}"
    harness.show(name, {**found, **facts})
    results = {"threads": 2, "suites": {name: {**found, **facts}}}
    print(harness.write("training", results, options.out))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
