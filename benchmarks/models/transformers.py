"""Transformers of self-attention: encoders, normalised behind their parts, and decoders, before them."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import nn
from torch.nn import functional


class Transformer(nn.Module):
    """x[batch, tokens, width] → y of the same shape; inner layers four times as wide, exact GELU.

    The parameters are those of PyTorch's own layers, the arithmetic is written out: queries, keys and
    values as one product, and `scaled_dot_product_attention`. `causal`: no token sees a later one, and a
    last normalisation. After A. Vaswani et al., Attention Is All You Need, 2017, and J. Devlin et al., BERT,
    2019.
    """

    def __init__(self, layers: int, width: int, heads: int, causal: bool = False) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=causal
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width) if causal else nn.Identity()

    def forward(self, x: Any) -> Any:
        for module in self.layers:
            layer = cast(nn.TransformerEncoderLayer, module)
            if self.causal:
                x = x + self._attention(layer, layer.norm1(x))
                x = x + self._wide(layer, layer.norm2(x))
            else:
                x = layer.norm1(x + self._attention(layer, x))
                x = layer.norm2(x + self._wide(layer, x))
        return self.norm(x)

    def _attention(self, layer: nn.TransformerEncoderLayer, x: Any) -> Any:
        own = layer.self_attn
        batch, tokens, width = x.shape
        joined = functional.linear(x, own.in_proj_weight, own.in_proj_bias)
        q, k, v = (
            part.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
            for part in joined.chunk(3, -1)
        )
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return own.out_proj(y.transpose(1, 2).reshape(batch, tokens, width))

    @staticmethod
    def _wide(layer: nn.TransformerEncoderLayer, x: Any) -> Any:
        return layer.linear2(functional.gelu(layer.linear1(x)))

    def library(self) -> nn.Module:
        """The same function by PyTorch's own layers, which have a fast path of fused kernels."""
        return LibraryTransformer(self)


class LibraryTransformer(nn.Module):
    """`Transformer` by `nn.TransformerEncoderLayer`."""

    def __init__(self, of: Transformer) -> None:
        super().__init__()
        self.layers, self.norm, self.causal = of.layers, of.norm, of.causal

    def forward(self, x: Any) -> Any:
        mask = None
        if self.causal:
            mask = nn.Transformer.generate_square_subsequent_mask(
                x.shape[1], device=x.device, dtype=x.dtype
            )
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=self.causal)
        return self.norm(x)


class LstmStack(nn.Module):
    """x[steps, batch, units] → y of the same shape, through LSTM layers; cuDNN's own on a GPU."""

    def __init__(self, layers: int = 10, units: int = 256) -> None:
        super().__init__()
        self.lstm = nn.LSTM(units, units, layers)

    def forward(self, x: torch.Tensor) -> Any:
        return self.lstm(x)[0]
