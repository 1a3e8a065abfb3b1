"""The workloads: PyTorch modules with seeded random weights, and their ONNX files.

float32, NCHW. Needs PyTorch, which the rest of irkit does without. Every module is in evaluation mode, with
batch normalisations whose statistics are random too.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import onnx
import torch
from torch import nn
from torch.fx.experimental.optimization import fuse

from benchmarks.models.nasnet import NASNetA
from benchmarks.models.nasrnn import NasRnn
from benchmarks.models.resnet import ResNet
from benchmarks.models.resnext import ResNeXt
from benchmarks.models.speech import DeepSpeech2, Seq2Seq
from benchmarks.models.transformers import LstmStack, Transformer

OPSET = 17
HALF_OPSET = 22
"""The first in which convolutions take bfloat16. PyTorch's exporter ends at 20; between them operators have
got types and no other meaning."""


class AlexNet(nn.Module):
    """W4: x[1, 3, 227, 227] → y[1, classes]. `width` scales channels and units, for tests."""

    def __init__(self, width: float = 1.0, size: int = 227, classes: int = 1000) -> None:
        super().__init__()
        c = [int(n * width) for n in (64, 192, 384, 384, 256, 4096)]
        self.features = nn.Sequential(
            *(nn.Conv2d(3, c[0], 11, 4), nn.ReLU(), nn.MaxPool2d(3, 2)),
            *(nn.Conv2d(c[0], c[1], 5, 1, 2), nn.ReLU(), nn.MaxPool2d(3, 2)),
            *(nn.Conv2d(c[1], c[2], 3, 1, 1), nn.ReLU()),
            *(nn.Conv2d(c[2], c[3], 3, 1, 1), nn.ReLU()),
            *(nn.Conv2d(c[3], c[4], 3, 1, 1), nn.ReLU(), nn.MaxPool2d(3, 2)),
        )
        side = ((((size - 11) // 4 + 1 - 3) // 2 + 1 - 3) // 2 + 1 - 3) // 2 + 1
        self.classifier = nn.Sequential(
            *(nn.Linear(c[4] * side * side, c[5]), nn.ReLU()),
            *(nn.Linear(c[5], c[5]), nn.ReLU()),
            nn.Linear(c[5], classes),
        )

    def forward(self, x: Any) -> Any:
        return self.classifier(self.features(x).flatten(1))


@dataclass(frozen=True)
class Workload:
    """A model to measure. `build` makes what is exported; `peers` hold the same function otherwise
    written, made from the module. `small` is the same architecture at a size for tests. Shapes are of one
    row; `axis` is the dimension of the input that is the batch."""

    name: str
    build: Callable[[], nn.Module]
    shape: tuple[int, ...]
    small: Callable[[], nn.Module]
    small_shape: tuple[int, ...]
    peers: dict[str, Callable[[Any], nn.Module]] = field(
        default_factory=dict[str, Callable[[Any], nn.Module]]
    )
    axis: int = 0

    def shape_of(self, batch: int, small: bool = False) -> tuple[int, ...]:
        """The input's shape for so many rows."""
        shape = list(self.small_shape if small else self.shape)
        shape[self.axis] = batch
        return tuple(shape)


def folded(net: nn.Module) -> nn.Module:
    """The same function with batch normalisations folded into the convolutions before them."""
    return fuse(net)


def channels_last(net: nn.Module) -> nn.Module:
    """The same function with channels that lie side by side, normalisations folded."""
    return folded(net).to(memory_format=torch.channels_last)


_IMAGES: dict[str, Callable[[Any], nn.Module]] = {
    "folded": folded,
    "channels_last": channels_last,
}
_LIBRARY: dict[str, Callable[[Any], nn.Module]] = {"PyTorch's layers": lambda net: net.library()}

WORKLOADS = {
    w.name: w
    for w in (
        Workload(
            "W1",
            lambda: ResNeXt(9, split=True),
            (1, 3, 32, 32),
            lambda: ResNeXt(1, split=True, branches=3, width=4, channels=(4, 8, 16)),
            (1, 3, 8, 8),
            {"grouped": lambda net: net.grouped()},
        ),
        Workload(
            "W1-29",
            lambda: ResNeXt(3, split=True),
            (1, 3, 32, 32),
            lambda: ResNeXt(1, split=True, branches=2, width=4, channels=(4, 8, 8)),
            (1, 3, 8, 8),
            {"grouped": lambda net: net.grouped()},
        ),
        Workload(
            "W1-grouped",
            lambda: ResNeXt(9, split=False),
            (1, 3, 32, 32),
            lambda: ResNeXt(1, split=False, branches=3, width=4, channels=(4, 8, 16)),
            (1, 3, 8, 8),
        ),
        Workload(
            "W3",
            NASNetA,
            (1, 3, 32, 32),
            lambda: NASNetA(cells=3, filters=4, stem=6),
            (1, 3, 8, 8),
        ),
        Workload(
            "W4",
            AlexNet,
            (1, 3, 227, 227),
            lambda: AlexNet(1 / 16, 67, 10),
            (1, 3, 67, 67),
        ),
        Workload(
            "W5",
            DeepSpeech2,
            (1, 1, 300, 171),
            lambda: DeepSpeech2(layers=2, units=8, channels=4, frequencies=19),
            (1, 1, 22, 19),
        ),
        Workload(
            "W7",
            Seq2Seq,
            (100, 1, 128),
            lambda: Seq2Seq(units=8, encoder=2, decoder=2, steps=3),
            (5, 1, 8),
            axis=1,
        ),
        Workload(
            "NASRNN",
            NasRnn,
            (100, 1, 256),
            lambda: NasRnn(units=8),
            (5, 1, 8),
            {"joined": lambda net: net.joined()},
            axis=1,
        ),
        Workload(
            "encoder",
            lambda: Transformer(4, 256, 8),
            (1, 128, 256),
            lambda: Transformer(1, 16, 2),
            (1, 6, 16),
            _LIBRARY,
        ),
        Workload(
            "decoder",
            lambda: Transformer(4, 256, 8, causal=True),
            (1, 64, 256),
            lambda: Transformer(1, 16, 2, causal=True),
            (1, 6, 16),
            _LIBRARY,
        ),
        Workload(
            "BERT",
            lambda: Transformer(12, 768, 12),
            (1, 128, 768),
            lambda: Transformer(2, 24, 3),
            (1, 6, 24),
            _LIBRARY,
        ),
        Workload(
            "LSTM",
            LstmStack,
            (100, 1, 256),
            lambda: LstmStack(2, 8),
            (5, 1, 8),
            axis=1,
        ),
        Workload(
            "ResNet-50",
            ResNet,
            (1, 3, 224, 224),
            lambda: ResNet((1, 1), 8, 10),
            (1, 3, 32, 32),
            _IMAGES,
        ),
        Workload(
            "ResNeXt-29",
            lambda: ResNeXt(3, split=False),
            (1, 3, 32, 32),
            lambda: ResNeXt(1, split=False, branches=2, width=4, channels=(4, 8, 8)),
            (1, 3, 8, 8),
            _IMAGES,
        ),
    )
}


def seeded(build: Callable[[], nn.Module], seed: int = 0) -> nn.Module:
    """A module in evaluation mode, the same on every call."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = build().eval()
        for part in module.modules():
            if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
                mean, var = part.running_mean, part.running_var
                assert mean is not None
                assert var is not None
                mean.normal_(0, 0.1)
                var.uniform_(0.5, 1.5)
    return module


def to_onnx(module: nn.Module, shape: tuple[int, ...]) -> onnx.ModelProto:
    """The module exported by PyTorch's TorchScript exporter, input x and output y, sizes fixed.

    x is of the type of the module's parameters.
    """
    file = io.BytesIO()
    element = next(module.parameters()).dtype
    half = element != torch.float32
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            (torch.zeros(shape, dtype=element),),
            file,
            dynamo=False,
            input_names=["x"],
            output_names=["y"],
            opset_version=20 if half else OPSET,
        )
    model = onnx.load_from_string(file.getvalue())
    if half:
        model.opset_import[0].version = HALF_OPSET
    return model
