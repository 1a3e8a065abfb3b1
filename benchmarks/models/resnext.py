"""W1: ResNeXt 16×64d for CIFAR, its branches written out or as grouped convolutions."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import nn
from torch.nn import functional


def _unit(
    inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1
) -> nn.Sequential:
    """Convolution without bias, then batch normalisation."""
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs))


class Block(nn.Module):
    """Branches of 1×1 and 3×3 convolutions, concatenated and projected; the shortcut is added.

    Where the block downsamples, the shortcut is a 2×2 average pool with zero channels around it.
    """

    def __init__(
        self, inputs: int, outputs: int, stride: int, split: bool, branches: int, width: int
    ) -> None:
        super().__init__()
        self.outputs, self.stride, self.split, self.branches = outputs, stride, split, branches
        parts = branches if split else 1
        channels, groups = branches * width // parts, branches // parts
        self.reduce = nn.ModuleList(_unit(inputs, channels, 1, stride) for _ in range(parts))
        self.conv = nn.ModuleList(_unit(channels, channels, 3, 1, groups) for _ in range(parts))
        self.project = _unit(branches * width, outputs, 1)

    def forward(self, x: Any) -> Any:
        parts = [
            functional.relu(conv(functional.relu(reduce(x))))
            for reduce, conv in zip(self.reduce, self.conv, strict=True)
        ]
        y = self.project(torch.cat(parts, 1) if self.split else parts[0])
        return functional.relu(y + self._shortcut(x))

    def _shortcut(self, x: Any) -> Any:
        if self.stride == 1:
            return x
        missing = self.outputs - x.shape[1]
        pooled = functional.avg_pool2d(x, 2)
        return functional.pad(pooled, (0, 0, 0, 0, missing // 2, missing - missing // 2))


class ResNeXt(nn.Module):
    """x[1, 3, n, n] → y[1, 10].

    `blocks` a stage: 3 make the ResNeXt-29 of the paper (298 convolutions with the branches written
    out, 6.1 GFLOP), 9 the network that Rammer's artifact measures under this name (892, 18.4 GFLOP).
    """

    def __init__(
        self,
        blocks: int,
        *,
        split: bool,
        branches: int = 16,
        width: int = 64,
        channels: tuple[int, ...] = (64, 128, 256),
    ) -> None:
        super().__init__()
        self.made_of: dict[str, Any] = {
            "blocks": blocks,
            "branches": branches,
            "width": width,
            "channels": channels,
        }
        self.stem = _unit(3, channels[0], 3)
        inputs, stages = channels[0], list[nn.Module]()
        for stage, outputs in enumerate(channels):
            for block in range(blocks):
                stride = 2 if stage and not block else 1
                stages.append(Block(inputs, outputs, stride, split, branches, width))
                inputs = outputs
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(inputs, 10, bias=False)

    def forward(self, x: Any) -> Any:
        x = self.stages(functional.relu(self.stem(x)))
        return self.head(x.mean((2, 3)))

    def grouped(self) -> ResNeXt:
        """The same function with one grouped convolution for all branches."""
        other = ResNeXt(split=False, **self.made_of).to(next(self.parameters())).eval()
        other.stem, other.head = self.stem, self.head
        for mine, its in zip(self.stages, other.stages, strict=True):
            mine, its = cast(Block, mine), cast(Block, its)
            its.project = mine.project
            for name in ("reduce", "conv"):
                states = [part.state_dict() for part in getattr(mine, name)]
                joined = {
                    key: value if value.ndim == 0 else torch.cat([state[key] for state in states])
                    for key, value in states[0].items()
                }
                getattr(its, name)[0].load_state_dict(joined)
        return other
