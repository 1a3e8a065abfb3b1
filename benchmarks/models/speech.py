"""W5 and W7: recurrent networks behind convolutions, and as encoder and decoder."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class DeepSpeech2(nn.Module):
    """W5: x[1, 1, time, frequency] → y[time / 4, 29].

    Two strided convolutions, each with ReLU6 and batch normalisation; their result as one row a time
    step, channels running fastest; LSTM layers, batch normalisation, a dense layer at every step.
    """

    def __init__(
        self, layers: int = 7, units: int = 256, channels: int = 32, frequencies: int = 171
    ) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, channels, (41, 11), (2, 2), (20, 5)),
            nn.ReLU6(),
            nn.BatchNorm2d(channels),
            nn.Conv2d(channels, channels, (21, 11), (2, 1), (10, 5)),
            nn.ReLU6(),
            nn.BatchNorm2d(channels),
        )
        self.lstm = nn.LSTM(channels * ((frequencies - 1) // 2 + 1), units, layers)
        self.norm = nn.BatchNorm1d(units)
        self.head = nn.Linear(units, 29)

    def forward(self, x: Any) -> Any:
        rows = self.features(x).permute(2, 0, 3, 1).flatten(2)
        return self.head(self.norm(self.lstm(rows)[0][:, 0]))


class Seq2Seq(nn.Module):
    """W7: x[steps, 1, units] → y[decoded steps, units].

    The encoder is a stack of LSTM layers. The decoder is a stack of LSTM cells, all states zero at
    first; its input is the last layer's final cell state, then its own output.
    """

    def __init__(
        self, units: int = 128, encoder: int = 8, decoder: int = 4, steps: int = 30
    ) -> None:
        super().__init__()
        self.units, self.steps = units, steps
        self.encoder = nn.LSTM(units, units, encoder)
        self.decoder = nn.ModuleList(nn.LSTMCell(units, units) for _ in range(decoder))

    def forward(self, x: Any) -> Any:
        _, (_, cell_states) = self.encoder(x)
        value = cell_states[-1]
        zero = torch.zeros_like(value)
        states = [(zero, zero) for _ in self.decoder]
        outputs: list[Any] = []
        for _ in range(self.steps):
            for layer, cell in enumerate(self.decoder):
                states[layer] = cell(value, states[layer])
                value = states[layer][0]
            outputs.append(value)
        return torch.cat(outputs)
