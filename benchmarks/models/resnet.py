"""ResNet-50: K. He et al., Deep Residual Learning for Image Recognition, CVPR 2016, as torchvision has it."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional


def _unit(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    """Convolution without bias, of He's initial weights, then batch normalisation."""
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs))


class Bottleneck(nn.Module):
    """1×1, 3×3 (with the stride) and 1×1 convolutions, and the shortcut added."""

    def __init__(self, inputs: int, inner: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.reduce, self.conv = _unit(inputs, inner, 1), _unit(inner, inner, 3, stride)
        self.project = _unit(inner, outputs, 1)
        changed = stride > 1 or inputs != outputs
        self.shortcut: nn.Module = _unit(inputs, outputs, 1, stride) if changed else nn.Identity()

    def forward(self, x: Any) -> Any:
        y = functional.relu(self.conv(functional.relu(self.reduce(x))))
        return functional.relu(self.project(y) + self.shortcut(x))


class ResNet(nn.Module):
    """x[batch, 3, n, n] → y[batch, classes]. `width`: channels of the first stage's bottlenecks."""

    def __init__(
        self, blocks: tuple[int, ...] = (3, 4, 6, 3), width: int = 64, classes: int = 1000
    ) -> None:
        super().__init__()
        stages = [*_unit(3, width, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        inputs = width
        for stage, count in enumerate(blocks):
            inner = width << stage
            for block in range(count):
                stride = 2 if stage and not block else 1
                stages.append(Bottleneck(inputs, inner, 4 * inner, stride))
                inputs = 4 * inner
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(inputs, classes)

    def forward(self, x: Any) -> Any:
        return self.head(torch.mean(self.stages(x), (2, 3)))
