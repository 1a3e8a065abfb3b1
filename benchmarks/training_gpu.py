"""Steps of training on a GPU, beside PyTorch's captured in a CUDA graph: correctness first, then speed.

    python -m benchmarks.training_gpu [--only MLP LSTM] [--batches 32 128] [--optimizer adam] [--steps 20]

The networks of `training.py`, float32, each from the same weights on the same batch, which lies on the device
as all else does: a step copies nothing to or from the host. Losses of so many steps are held against
PyTorch's in float64. A time is that of a step among many that are queued one behind another, from CUDA
events: of irkit that of one launch, and with the host's work around each, of PyTorch that of a replayed graph
of forward, backward and the fused update. `--prepare` compiles, and measures nothing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import irkit
from benchmarks import harness
from benchmarks.training_networks import WORKLOADS, Workload
from irkit.runtime.cuda.driver import Event
from irkit.schedule.modes import Mode
from irkit.training import losses, optimizers

BATCHES = {
    "MLP": (32, 128, 4096),
    "CNN": (32, 128, 1024),
    "LSTM": (32, 128, 1024),
    "decoder": (8, 32, 128),
}
"""Small ones, and one that fills the device; of the decoder each row is 64 tokens."""
ROUNDING = 2e-3
"""By how much a loss of magnitude 1 may differ from float64's after all steps, of either side."""
OPTIMIZERS = ("sgd", "adam")


def compiled(work: Workload, optimizer: str, x: Any, y: Any, device: str | None) -> Any:
    """irkit's step. `device`: the name of one that need not be there."""
    made = {"sgd": optimizers.SGD(work.rate), "adam": optimizers.Adam(work.rate)}[optimizer]
    step = irkit.training_step(
        work.model(),
        losses.softmax_cross_entropy,
        made,
        parameters=work.parameters(),
        target="cuda",
        device=device,
    )
    return step.compile(x, y)


@dataclass
class OfIrkit:
    """A step whose inputs lie on the device, and what runs it."""

    program: Any
    inputs: list[Any]

    @staticmethod
    def of(work: Workload, optimizer: str, x: Any, y: Any) -> OfIrkit:
        """Compile, for the GPU that is there."""
        step = compiled(work, optimizer, x, y, None)
        traced, program = step._program((x, y))
        step._move_to(program.state)
        return OfIrkit(program, traced.all_inputs([x, y]))

    def put(self, torch: Any) -> None:
        """Copy the inputs to the device."""
        self.inputs = [torch.as_tensor(a, device="cuda") for a in self.inputs]

    def step(self) -> Any:
        """Queue a step as a user does; the loss, on the device."""
        return self.program.run(self.inputs)[0]

    def launches(self, mode: Mode, calls: int = 40, blocks: int = 7) -> dict[str, float]:
        """Times of a step with nothing of the host around it, over the arrays bound last."""
        executor = self.program._first.executor
        stream, seconds = executor.runs.current, []
        for block in range(blocks + 1):
            start, end = Event(), Event()
            start.record(stream)
            for _ in range(calls):
                executor.launch(mode, 1, stream)
            end.record(stream)
            seconds += [end.since(start) / 1000 / calls] if block else []
        return harness.spread(seconds)


def of_torch(
    torch: Any, work: Workload, optimizer: str, x: Any, y: Any, dtype: Any
) -> Callable[[], Any]:
    """A step of PyTorch's, which gives the loss before it."""
    model = work.module(torch).to(device="cuda", dtype=dtype)
    kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
    more = {"capturable": True} if optimizer == "adam" else {}
    update = kinds[optimizer](model.parameters(), lr=work.rate, fused=True, **more)
    a, b = torch.as_tensor(x, device="cuda"), torch.as_tensor(y, device="cuda").reshape(-1)
    a = a.to(dtype) if a.is_floating_point() else a

    def step() -> Any:
        update.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(model(a), b)
        loss.backward()
        update.step()
        return loss.detach()

    return step


def graphed(torch: Any, step: Callable[[], Any], warm: int) -> tuple[Callable[[], Any], list[Any]]:
    """A step captured in a CUDA graph after `warm` steps, and the losses of these."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        before = [step().clone() for _ in range(warm)]
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()

    def replay() -> Any:
        """What the graph reads lives as long as this does."""
        assert step
        graph.replay()
        return loss

    return replay, before


def queued(
    torch: Any, run: Callable[[], Any], calls: int = 40, blocks: int = 7
) -> dict[str, float]:
    """Times of a call among many that are queued: (last event - first event) / calls."""
    for _ in range(5):
        run()
    seconds: list[float] = []
    for _ in range(blocks):
        torch.cuda.synchronize()
        start, end = torch.cuda.Event(True), torch.cuda.Event(True)
        start.record()
        for _ in range(calls):
            run()
        end.record()
        end.synchronize()
        seconds.append(start.elapsed_time(end) / 1000 / calls)
    return harness.spread(seconds)


def measured(work: Workload, optimizer: str, x: Any, y: Any, steps: int) -> dict[str, Any]:
    """Errors and times of both."""
    torch = harness.peer("torch")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    ours = OfIrkit.of(work, optimizer, x, y)
    ours.put(torch)
    ours.program._first.executor.mode = Mode.PERSISTENT.value
    exact = of_torch(torch, work, optimizer, x, y, torch.float64)
    wanted = [float(exact()) for _ in range(steps)]
    replay, first = graphed(torch, of_torch(torch, work, optimizer, x, y, torch.float32), 3)
    theirs = [*map(float, first), *(float(replay()) for _ in range(steps - len(first)))]
    found: dict[str, Any] = {"loss": wanted[-1], "appends": ours.program.report()["appends"]}
    found["waves"] = ours.program.report()["waves"]
    losses_of = {"PyTorch": theirs, "irkit": [float(ours.step()) for _ in range(steps)]}
    off = {name: harness.largest_error(got, wanted) for name, got in losses_of.items()}
    found |= {f"max error of {name}": value for name, value in off.items()}
    if max(off.values()) > ROUNDING:
        return {**found, "wrong": max(off.values())}
    found["PyTorch in a CUDA graph"] = peer = queued(torch, replay)
    found["irkit, calls"] = queued(torch, ours.step)
    for mode in (Mode.PERSISTENT, Mode.PER_WAVE, Mode.PER_OP):
        found[f"irkit, {mode.value}"] = ours.launches(mode)
    for name in ("calls", "persistent"):
        found[f"{name} over PyTorch"] = found[f"irkit, {name}"]["median_us"] / peer["median_us"]
    # Mode `auto` takes the fastest.
    modes = (Mode.PERSISTENT, Mode.PER_WAVE, Mode.PER_OP)
    best = min(found[f"irkit, {mode.value}"]["median_us"] for mode in modes)
    found["fastest mode over PyTorch"] = best / peer["median_us"]
    return found


def prepared(work: Workload, optimizer: str, x: Any, y: Any, device: str | None) -> dict[str, Any]:
    """What was compiled, and in how many seconds."""
    start = time.perf_counter()
    report = compiled(work, optimizer, x, y, device).report()
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "appends": report["appends"], "waves": report["waves"]}


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description="Steps of training on a GPU beside PyTorch.")
    parser.add_argument("--only", nargs="+", choices=[*WORKLOADS], default=[*WORKLOADS])
    parser.add_argument("--batches", nargs="+", type=int)
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="sgd")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--device", help="to compile for, with --prepare: it need not be there")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    suites: dict[str, Any] = {}
    for name, batch in _asked(options.only, options.batches):
        work = WORKLOADS[name]
        x, y = (a[0] for a in work.data(1, batch))
        title = f"{name}, batch {batch}, {options.optimizer}"
        if options.prepare:
            suites[title] = prepared(work, options.optimizer, x, y, options.device)
        else:
            suites[title] = measured(work, options.optimizer, x, y, options.steps)
        harness.show(title, suites[title])
    if not options.prepare:
        name = harness.peer("torch").cuda.get_device_name()
        facts = {"device": name, "suites": suites}
        print(harness.update("training_gpu", facts, options.out))
    return 0


def _asked(names: Sequence[str], batches: Sequence[int] | None) -> list[tuple[str, int]]:
    return [(name, batch) for name in names for batch in batches or BATCHES[name]]


if __name__ == "__main__":
    raise SystemExit(main())
