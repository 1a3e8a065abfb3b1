"""CPU or GPU for every part of a program at once: a minimum cut.

The parts are nodes between two terminals, the CPU and the GPU. A part costs what it takes on the side where
it is; a value that is made on one side and needed on the other costs its copy, once however many need it; a
program that uses the GPU at all costs a launch. Every assignment is a cut whose capacity is its cost, so the
least cut is the best assignment (H. S. Stone, "Multiprocessor Scheduling with the Aid of Network Flow
Algorithms", 1977).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from irkit.passes.placement.flow import HOST_PART, Flow, Value
from irkit.schedule.links import Link


@dataclass(frozen=True)
class Choice:
    """Where parts may run and what they cost there: `cpu` and `gpu` in nanoseconds, part by part; `tied` are
    those that have to be on the CPU."""

    flow: Flow
    link: Link
    cpu: Sequence[float]
    gpu: Sequence[float]
    tied: frozenset[int] = frozenset()

    def cost(self, on_gpu: Sequence[bool]) -> float:
        """Nanoseconds of an assignment. Part n is number n - 1."""
        parts = sum(self.gpu[n] if there else self.cpu[n] for n, there in enumerate(on_gpu))
        copies = sum(self.copy_cost(v, on_gpu) for v in self.flow.values)
        return parts + copies + (self.link.rates["launch"] if any(on_gpu) else 0.0)

    def copy_cost(self, value: Value, on_gpu: Sequence[bool]) -> float:
        """What copying a value costs in an assignment: nothing where it is needed on its own side."""
        made = _is_there(value.maker, on_gpu)
        if all(_is_there(user, on_gpu) == made for user in value.users):
            return 0.0
        way = self.link.to_host if made else self.link.to_device
        return value.times * way(value.nbytes)


def _is_there(part: int, on_gpu: Sequence[bool]) -> bool:
    return part != HOST_PART and on_gpu[part - 1]


def cheapest(choice: Choice) -> list[bool]:
    """For each part whether it runs on the GPU, at least cost; of equal ones, with more on the CPU."""
    networkx: Any = import_module("networkx")
    net: Any = networkx.DiGraph()
    source, sink, launch = "cpu", "gpu", "launch"
    net.add_edge(source, launch, capacity=round(choice.link.rates["launch"]))
    net.add_node(sink)
    for part, (cpu, gpu) in enumerate(zip(choice.cpu, choice.gpu, strict=True), 1):
        # On the CPU's side of the cut, the edge to the GPU is cut, which is the time on the CPU.
        net.add_edge(part, sink, capacity=round(cpu))
        net.add_edge(source, part, **({} if part in choice.tied else {"capacity": round(gpu)}))
        net.add_edge(launch, part)
    for number, value in enumerate(choice.flow.values):
        _add_value(net, choice, value, number)
    _, (cpu_side, _) = networkx.minimum_cut(net, source, sink)
    return [part not in cpu_side for part in range(1, len(choice.cpu) + 1)]


def _add_value(net: Any, choice: Choice, value: Value, number: int) -> None:
    """A node that is on a side as soon as one of the users is; between it and the maker is the copy."""
    maker = "cpu" if value.maker == HOST_PART else value.maker
    users = ["cpu" if user == HOST_PART else user for user in value.users if user != value.maker]
    into, back = ("in", number), ("back", number)
    _capacity(net, maker, into, round(value.times * choice.link.to_device(value.nbytes)))
    _capacity(net, back, maker, round(value.times * choice.link.to_host(value.nbytes)))
    for user in users:
        net.add_edge(into, user)
        net.add_edge(user, back)


def _capacity(net: Any, tail: Any, head: Any, capacity: int) -> None:
    net.add_edge(tail, head, capacity=capacity)
