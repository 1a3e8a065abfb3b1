"""W3: NASNet-A for CIFAR.

A cell has the states 0 (its input) and 1 (the input of the cell before), both brought to its number of
filters. Each of five steps adds two earlier states, each after an operation of its own; the states that
no step used are concatenated. After B. Zoph et al., Learning Transferable Architectures for Scalable
Image Recognition, CVPR 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional


@dataclass(frozen=True)
class Plan:
    """Operations and the states they read, two of each a step; `used`: states left out of the output."""

    operations: tuple[str, ...]
    states: tuple[int, ...]
    used: tuple[int, ...]


NORMAL = Plan(
    ("sep5", "sep3", "sep5", "sep3", "avg3", "none", "avg3", "avg3", "sep3", "none"),
    (0, 1, 1, 1, 0, 1, 1, 1, 0, 0),
    (1, 0, 0, 0, 0, 0, 0),
)
REDUCTION = Plan(
    ("sep5", "sep7", "max3", "sep7", "avg3", "sep5", "none", "avg3", "sep3", "max3"),
    (0, 1, 0, 1, 0, 1, 3, 2, 2, 0),
    (1, 1, 1, 0, 0, 0, 0),
)


def _pointwise(inputs: int, outputs: int) -> nn.Sequential:
    """ReLU, 1×1 convolution, batch normalisation."""
    return nn.Sequential(
        nn.ReLU(), nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
    )


def _separable(filters: int, kernel: int, stride: int) -> nn.Sequential:
    """Twice: ReLU, depthwise and pointwise convolution, batch normalisation."""
    layers: list[nn.Module] = []
    for step in (stride, 1):
        layers += [
            nn.ReLU(),
            nn.Conv2d(filters, filters, kernel, step, kernel // 2, groups=filters, bias=False),
            nn.Conv2d(filters, filters, 1, bias=False),
            nn.BatchNorm2d(filters),
        ]
    return nn.Sequential(*layers)


def _operation(name: str, filters: int, stride: int) -> nn.Module:
    if name == "none":
        return nn.Identity()
    kernel = int(name[3:])
    if name.startswith("sep"):
        return _separable(filters, kernel, stride)
    if name.startswith("avg"):
        return nn.AvgPool2d(kernel, stride, kernel // 2, count_include_pad=False)
    return nn.MaxPool2d(kernel, stride, kernel // 2)


class FactorisedReduction(nn.Module):
    """Halves the image: two 1×1 convolutions of every second pixel, one of them shifted by one."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs // 2, 1, bias=False)
        self.second = nn.Conv2d(inputs, outputs - outputs // 2, 1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x: Any) -> Any:
        x = functional.relu(x)
        shifted = functional.pad(x, (0, 1, 0, 1))[:, :, 1:, 1:]
        halves = (functional.avg_pool2d(x, 1, 2), functional.avg_pool2d(shifted, 1, 2))
        return self.norm(torch.cat([self.first(halves[0]), self.second(halves[1])], 1))


class Cell(nn.Module):
    """One cell; `before` and `inputs` are the channels of the two inputs."""

    def __init__(
        self, plan: Plan, before: int, inputs: int, filters: int, stride: int, shrink: bool
    ) -> None:
        super().__init__()
        self.plan = plan
        self.enter = _pointwise(inputs, filters)
        self.adjust: nn.Module = nn.Identity()
        if shrink:
            self.adjust = FactorisedReduction(before, filters)
        elif before != filters:
            self.adjust = _pointwise(before, filters)
        self.operations = nn.ModuleList(
            _operation(name, filters, stride if state < 2 else 1)
            for name, state in zip(plan.operations, plan.states, strict=True)
        )
        self.outputs = filters * plan.used.count(0)

    def forward(self, before: Any, x: Any) -> Any:
        states = [self.enter(x), self.adjust(before)]
        for step in range(0, len(self.plan.states), 2):
            left, right = (
                self.operations[i](states[self.plan.states[i]]) for i in (step, step + 1)
            )
            states.append(left + right)
        kept = [s for s, used in zip(states, self.plan.used, strict=True) if not used]
        return torch.cat(kept, 1)


class NASNetA(nn.Module):
    """x[1, 3, n, n] → y[1, 10]: `cells` normal cells, a reduction before each further third of them."""

    def __init__(self, cells: int = 18, filters: int = 32, stem: int = 96) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, stem, 3, padding=1, bias=False), nn.BatchNorm2d(stem)
        )
        self.cells = nn.ModuleList()
        before = inputs = stem
        reduced = False
        for number in range(cells):
            if number and number % (cells // 3) == 0:
                filters *= 2
                cell = Cell(REDUCTION, before, inputs, filters, 2, reduced)
                self.cells.append(cell)
                before, inputs, reduced = inputs, cell.outputs, True
            cell = Cell(NORMAL, before, inputs, filters, 1, reduced)
            self.cells.append(cell)
            before, inputs, reduced = inputs, cell.outputs, False
        self.head = nn.Linear(inputs, 10)

    def forward(self, x: Any) -> Any:
        before = x = self.stem(x)
        for cell in self.cells:
            before, x = x, cell(before, x)
        return self.head(functional.relu(x).mean((2, 3)))
