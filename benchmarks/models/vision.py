"""Convolutional networks for a CPU's benchmark: ONNX models with seeded random weights, NCHW, float32.

Layer by layer as in the papers and in torchvision, each with a batch normalisation behind every
convolution, as exporters write them. `width` divides channels and `size` is the image's, for tests.
"""

from __future__ import annotations

from onnx import ModelProto

from benchmarks.models.onnx_model import OnnxModel

Batch = int | None
"""A number of rows; None: a symbol."""


class _Vision(OnnxModel):
    """Adds layers of images."""

    def conv(
        self, x: str, shape: tuple[int, int, int], stride: int = 1, group: int = 1, act: str = "Relu"
    ) -> str:  # fmt: skip
        """Convolution of (outputs, inputs, kernel), batch normalisation and an activation, or ""."""
        outputs, inputs, kernel = shape
        number = len(self.nodes)
        fan_in = inputs // group * kernel * kernel
        scale = (2 / fan_in) ** 0.5 if act else fan_in**-0.5
        w = self.weight(f"w{number}", outputs, inputs // group, kernel, kernel, scale=scale)
        sides = {"kernel_shape": [kernel] * 2, "pads": [kernel // 2] * 4, "strides": [stride] * 2}
        x = self.norm(self.then("Conv", x, w, group=group, **sides), outputs)
        return self.activation(x, act)

    def norm(self, x: str, channels: int) -> str:
        """Batch normalisation whose scale is about one."""
        name = f"bn{len(self.nodes)}"
        draw = self.random.uniform
        parts = {"scale": (0.8, 1.2), "bias": (-0.1, 0.1), "mean": (-0.1, 0.1), "var": (0.8, 1.2)}
        inputs = [
            self.array(f"{name}.{part}", draw(*between, channels).astype("float32"))
            for part, between in parts.items()
        ]
        return self.then("BatchNormalization", x, *inputs, epsilon=1e-5)

    def activation(self, x: str, act: str) -> str:
        """Relu, Relu6, Silu or none."""
        if act == "Relu6":
            return self.then("Clip", x, self.number(0.0), self.number(6.0))
        if act == "Silu":
            return self.then("Mul", x, self.then("Sigmoid", x))
        return self.then(act, x) if act else x

    def head(self, x: str, channels: int, classes: int) -> None:
        """The mean over the image, and a linear layer: y."""
        flat = self.then("Flatten", self.then("GlobalAveragePool", x), axis=1)
        w, b = self.weight("head.w", classes, channels), self.weight("head.b", classes, scale=0.1)
        self.node("Gemm", [flat, w, b], "y", transB=1)

    def up(self, x: str, shape: tuple[int, int, int], stride: int, pad: int) -> str:
        """Transposed convolution of (inputs, outputs, kernel) with a bias."""
        inputs, outputs, kernel = shape
        number = len(self.nodes)
        terms = inputs * kernel * kernel / stride**2
        w = self.weight(f"w{number}", inputs, outputs, kernel, kernel, scale=(2 / terms) ** 0.5)
        b = self.weight(f"b{number}", outputs, scale=0.1)
        sides = {"kernel_shape": [kernel] * 2, "pads": [pad] * 4, "strides": [stride] * 2}
        return self.then("ConvTranspose", x, w, b, **sides)

    def image(self, batch: Batch, size: int, outputs: list[int]) -> ModelProto:
        """From an image of three channels x to y."""
        rows = batch or "batch"
        return self.finish({"x": [rows, 3, size, size]}, {"y": [rows, *outputs]})


def resnet18(batch: Batch = 1, width: int = 1, size: int = 224, seed: int = 0) -> ModelProto:
    """K. He et al., Deep Residual Learning for Image Recognition, CVPR 2016."""
    m = _Vision("resnet18", seed)
    before = 64 // width
    x = m.conv("x", (before, 3, 7), 2)
    x = m.then("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for stage in range(4):
        channels = (64 << stage) // width
        for block in range(2):
            stride = 2 if stage and not block else 1
            y = m.conv(x, (channels, before, 3), stride)
            y = m.conv(y, (channels, channels, 3), act="")
            if stride == 2:
                x = m.conv(x, (channels, before, 1), 2, act="")
            x, before = m.then("Relu", m.then("Add", y, x)), channels
    m.head(x, before, 1000 // width)
    return m.image(batch, size, [1000 // width])


def mobilenet_v2(batch: Batch = 1, width: int = 1, size: int = 224, seed: int = 0) -> ModelProto:
    """M. Sandler et al., MobileNetV2: Inverted Residuals and Linear Bottlenecks, CVPR 2018."""
    m = _Vision("mobilenet_v2", seed)
    before = 32 // width
    x = m.conv("x", (before, 3, 3), 2, act="Relu6")
    plan = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
            (6, 160, 3, 2), (6, 320, 1, 1))  # fmt: skip
    for wider, channels, blocks, first in plan:
        for block in range(blocks):
            outputs, inner = channels // width, before * wider
            stride = 1 if block else first
            y = m.conv(x, (inner, before, 1), act="Relu6") if wider > 1 else x
            y = m.conv(y, (inner, inner, 3), stride, inner, "Relu6")
            y = m.conv(y, (outputs, inner, 1), act="")
            x = m.then("Add", x, y) if stride == 1 and before == outputs else y
            before = outputs
    x = m.conv(x, (1280 // width, before, 1), act="Relu6")
    m.head(x, 1280 // width, 1000 // width)
    return m.image(batch, size, [1000 // width])


def efficientnet_b0(batch: Batch = 1, width: int = 1, size: int = 224, seed: int = 0) -> ModelProto:
    """M. Tan and Q. Le, EfficientNet: Rethinking Model Scaling for Networks, ICML 2019."""
    m = _Vision("efficientnet_b0", seed)
    before = 32 // width
    x = m.conv("x", (before, 3, 3), 2, act="Silu")
    plan = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3),
            (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3))  # fmt: skip
    for wider, channels, blocks, first, kernel in plan:
        for block in range(blocks):
            outputs, inner = channels // width, before * wider
            stride = 1 if block else first
            y = m.conv(x, (inner, before, 1), act="Silu") if wider > 1 else x
            y = m.conv(y, (inner, inner, kernel), stride, inner, "Silu")
            y = _squeeze_and_excite(m, y, inner, max(before // 4, 1))
            y = m.conv(y, (outputs, inner, 1), act="")
            x = m.then("Add", x, y) if stride == 1 and before == outputs else y
            before = outputs
    x = m.conv(x, (1280 // width, before, 1), act="Silu")
    m.head(x, 1280 // width, 1000 // width)
    return m.image(batch, size, [1000 // width])


def _squeeze_and_excite(m: _Vision, x: str, channels: int, inner: int) -> str:
    """Each channel times a number between 0 and 1 that the means of all channels give."""
    number = len(m.nodes)
    y = m.then("GlobalAveragePool", x)
    w = m.weight(f"squeeze{number}", inner, channels, 1, 1)
    y = m.activation(m.then("Conv", y, w, m.weight(f"sb{number}", inner, scale=0.1)), "Silu")
    w = m.weight(f"excite{number}", channels, inner, 1, 1)
    y = m.then("Conv", y, w, m.weight(f"eb{number}", channels, scale=0.1))
    return m.then("Mul", x, m.then("Sigmoid", y))


def unet(batch: Batch = 1, width: int = 1, size: int = 128, seed: int = 0) -> ModelProto:
    """O. Ronneberger et al., U-Net, MICCAI 2015, padded and a quarter as wide; two classes."""
    m = _Vision("unet", seed)
    channels = [16 * 2**n // width for n in range(5)]
    x, before, skipped = "x", 3, list[str]()
    for level, c in enumerate(channels):
        if level:
            x = m.then("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        x = m.conv(m.conv(x, (c, before, 3)), (c, c, 3))
        before = c
        skipped.append(x)
    for c, skip in zip(channels[-2::-1], skipped[-2::-1], strict=True):
        x = m.then("Concat", skip, m.up(x, (before, c, 2), 2, 0), axis=1)
        x = m.conv(m.conv(x, (c, 2 * c, 3)), (c, c, 3))
        before = c
    w, b = m.weight("out.w", 2, before, 1, 1), m.weight("out.b", 2, scale=0.1)
    m.node("Conv", [x, w, b], "y")
    return m.image(batch, size, [2, size, size])


def vae_decoder(batch: Batch = 1, width: int = 1, seed: int = 0) -> ModelProto:
    """A convolutional VAE's decoder: z[batch, 128] → y[batch, 3, 128, 128], 4 × 4 kernels of stride 2."""
    m = _Vision("vae_decoder", seed)
    latent, before = 128 // width, 512 // width
    w = m.weight("in.w", before * 16, latent)
    x = m.then("Gemm", "z", w, m.weight("in.b", before * 16, scale=0.1), transB=1)
    x = m.then("Reshape", x, m.integers(-1, before, 4, 4))
    for c in (256 // width, 128 // width, 64 // width, 32 // width):
        x = m.then("Relu", m.norm(m.up(x, (before, c, 4), 2, 1), c))
        before = c
    m.node("Sigmoid", [m.up(x, (before, 3, 4), 2, 1)], "y")
    rows = batch or "batch"
    return m.finish({"z": [rows, latent]}, {"y": [rows, 3, 128, 128]})
