"""NASRNN: the recurrent cell that architecture search found, written out step by step."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class NasCell(nn.Module):
    """One step: x[batch, inputs], h and c[batch, units] → the new h and c.

    The cell of B. Zoph and Q. V. Le, Neural Architecture Search with Reinforcement Learning, ICLR 2017, as
    TensorFlow's contrib.rnn.NASCell computes it without biases: eight products of x and eight of h.
    """

    def __init__(self, inputs: int, units: int) -> None:
        super().__init__()
        weights = [torch.randn(n, units) * n**-0.5 for n in (inputs,) * 8 + (units,) * 8]
        self.of_input = nn.ParameterList(weights[:8])
        self.of_state = nn.ParameterList(weights[8:])

    def forward(self, x: Any, h: Any, c: Any) -> tuple[Any, Any]:
        a = [x @ w for w in self.of_input]
        b = [h @ w for w in self.of_state]
        return self.update(a, b, c)

    @staticmethod
    def update(a: Any, b: Any, c: Any) -> tuple[Any, Any]:
        """The new h and c from the products of the input, those of the state, and c."""
        first = torch.tanh(torch.sigmoid(a[0] + b[0]) * torch.relu(a[1] + b[1]))
        second = torch.tanh(torch.sigmoid(a[2] + b[2]) + torch.relu(a[3] * b[3]))
        third = torch.tanh(torch.tanh(a[4] + b[4]) * torch.sigmoid(a[5] + b[5]))
        fourth = torch.sigmoid(torch.tanh(a[6] + b[6]) + torch.sigmoid(a[7] + b[7]))
        new_c = torch.tanh(first + c) * second
        return torch.tanh(new_c * torch.tanh(third + fourth)), new_c


class NasRnn(nn.Module):
    """x[steps, batch, units] → the last state y[batch, units], states zero at first."""

    def __init__(self, units: int = 256) -> None:
        super().__init__()
        self.units = units
        self.cell = NasCell(units, units)

    def forward(self, x: Any) -> Any:
        h = c = torch.zeros_like(x[0])
        for step in range(x.shape[0]):
            h, c = self.cell(x[step], h, c)
        return h

    def joined(self) -> nn.Module:
        """The same function with one product of all inputs and one of the state a step."""
        return JoinedNasRnn(self)


class JoinedNasRnn(nn.Module):
    """`NasRnn` as one who tunes it for PyTorch writes it: weights side by side, inputs before the loop."""

    def __init__(self, of: NasRnn) -> None:
        super().__init__()
        self.of_input = nn.Parameter(torch.cat(list(of.cell.of_input), 1))
        self.of_state = nn.Parameter(torch.cat(list(of.cell.of_state), 1))

    def forward(self, x: Any) -> Any:
        h = c = torch.zeros_like(x[0])
        inputs = x @ self.of_input
        for step in range(x.shape[0]):
            a, b = inputs[step].chunk(8, -1), (h @ self.of_state).chunk(8, -1)
            h, c = NasCell.update(a, b, c)
        return h
