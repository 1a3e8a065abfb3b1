"""Programs with loops on a GPU that is emulated: the real executor over the emitted kernels' text."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import Any

import numpy as np
from grid_emulator import EmulatedDriver

import irkit
from irkit.context import IrkitContext
from irkit.driver.pipelines.lowering import bring_to_level
from irkit.driver.registry import register_dialects
from irkit.lower.task_to_numba.emit import emit_module
from irkit.runtime.cuda import driver, executor, streams
from irkit.runtime.cuda.facts import read_facts
from irkit.schedule import devices
from irkit.schedule.devices import device
from irkit.weights import WeightStore


def register_gpu4(monkeypatch: Any) -> None:
    """A GPU of four multiprocessors, with blocks of two warps."""
    made = replace(device("h200"), name="gpu4", veus=4, threads=64, multiprocessors=4)
    monkeypatch.setitem(devices._REGISTRY, "gpu4", lambda: made)


def emitted(text: str) -> tuple[str, WeightStore]:
    """The module of a graph-level function for `gpu4`."""
    ctx = IrkitContext(weights=WeightStore())
    register_dialects(ctx)
    module = parsed(text)
    bring_to_level(ctx, module, "schedule", "gpu4")
    return emit_module(module, ctx.weights), ctx.weights


def parsed(text: str) -> Any:
    """A module of a text."""
    found = irkit.parse(text)
    return getattr(found, "module", found)


class Emulated:
    """A program on an emulated GPU."""

    def __init__(self, monkeypatch: Any, source: str, weights: Any, mode: str, seed: int) -> None:
        gc.collect()
        self.driver = EmulatedDriver(seed)
        for module in (driver, streams):
            monkeypatch.setattr(module, "api", lambda: self.driver)
        driver.device.cache_clear()
        program, facts = read_facts(source)
        held = {name: weights[name] for name, _, _ in program.constants}
        self.executor = executor.CudaExecutor(program, facts, source.encode(), held, mode=mode)

    def __call__(self, *arrays: Any) -> list[Any]:
        return self.executor.run(list(arrays))


def same(given: Any, wanted: Any) -> bool:
    return all(np.array_equal(g, w) for g, w in zip(given, wanted, strict=True))
