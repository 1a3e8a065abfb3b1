"""Steps of training on two threads of a CPU, beside PyTorch eager and compiled.

    python -m benchmarks.training [--only CNN LSTM] [--steps 50] [--batch N] [--blocks 5] [--no-compile]

A perceptron, a small convolutional network, an LSTM and a decoder (`training_networks.py`) with softmax
cross-entropy and plain gradient descent, float32, each from the same weights on the same data: losses of all
steps are compared, and who is off by more than rounding has no time. A time is that of a whole epoch of so
many steps; candidates take turns, block by block. Beside wall-clock times there are those of processors,
which say more where others work on the machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import irkit
from benchmarks import harness
from benchmarks.training_networks import WORKLOADS, Workload
from irkit.training import losses, optimizers

NAIVE_BYTES, COURSE_BYTES = 12_702_688, 5_416_004
"""Of a step of the perceptron of batch 1000: one buffer a node, and the arena to be reached."""
ROUNDING = 1e-4
"""By how much a loss of magnitude 1 may differ, in float32, after all steps. Where two elements of a window
are equal but for rounding, a gradient goes another way, and the difference grows from there."""

Epoch = Callable[[], list[float]]
"""Runs all steps once more; their losses."""


def of_irkit(work: Workload, x: Any, y: Any) -> tuple[Epoch, dict[str, Any]]:
    """irkit's epoch, and what its program is."""
    step = irkit.training_step(
        work.model(),
        losses.softmax_cross_entropy,
        optimizers.SGD(work.rate),
        parameters=work.parameters(),
        target="cpu",
        device="cpu2",
    )
    step.compile(x[0], y[0])
    return lambda: [float(step(*pair)) for pair in zip(x, y, strict=True)], step.report()


def of_torch(work: Workload, x: Any, y: Any, *, compiled: bool) -> Epoch:
    """PyTorch's epoch. Raises ImportError without it."""
    torch = harness.peer("torch")
    torch.set_num_threads(2)
    model = work.module(torch)
    optimizer = torch.optim.SGD(model.parameters(), lr=work.rate)
    pairs = [(torch.tensor(a), torch.tensor(b).reshape(-1)) for a, b in zip(x, y, strict=True)]

    def step(a: Any, b: Any) -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(a), b)
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = torch.compile(step) if compiled else step
    return lambda: [float(run(*pair)) for pair in pairs]


def candidates(
    work: Workload, x: Any, y: Any, compiled: bool
) -> tuple[dict[str, Epoch], dict[str, Any]]:
    """All that can run here, and facts of irkit's program."""
    epoch, report = of_irkit(work, x, y)
    found = {"irkit": epoch}
    try:
        found["PyTorch"] = of_torch(work, x, y, compiled=False)
        if compiled:
            found["torch.compile"] = of_torch(work, x, y, compiled=True)
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


def trained(
    name: str, steps: int, batch: int | None, blocks: int, compiled: bool
) -> dict[str, Any]:
    """A workload's epochs measured, and its program's memory."""
    work = WORKLOADS[name]
    rows = batch or work.batch
    epochs, report = candidates(work, *work.data(steps, rows), compiled)
    facts: dict[str, Any] = {
        "arena bytes": report["arena_bytes"],
        "arena over its lower bound": report["arena_ratio"],
    }
    if (name, rows) == ("MLP", 1000):
        arena = report["arena_bytes"]
        facts |= {"arena over naive": arena / NAIVE_BYTES, "arena over goal": arena / COURSE_BYTES}
    return {**measured(epochs, blocks), **facts}


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description="Steps of training beside PyTorch.")
    parser.add_argument("--only", nargs="+", choices=[*WORKLOADS], default=[*WORKLOADS])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    suites: dict[str, Any] = {}
    for only in options.only:
        name = f"{only}, {options.steps} steps of {options.batch or WORKLOADS[only].batch}"
        suites[name] = trained(
            only, options.steps, options.batch, options.blocks, not options.no_compile
        )
        harness.show(name, suites[name])
    print(harness.write("training", {"threads": 2, "suites": suites}, options.out))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
