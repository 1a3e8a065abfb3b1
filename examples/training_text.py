"""A decoder like GPT, trained on the guides of this repository, byte by byte; then it writes a line.

    python examples/training_text.py [--steps 300] [--width 96] [--blocks 2]

Attention, layer normalisation and the rest are NumPy; one step, with Adam's update, is one program, which
keeps parameters and moments.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import irkit
from irkit.training import losses, optimizers, schedules

GUIDES = Path(__file__).resolve().parents[1] / "docs"
CONTEXT, HEADS, BATCH = 48, 4, 16


def normalised(x: Any, scale: Any, shift: Any) -> Any:
    """Rows with mean 0 and variance 1, scaled and shifted."""
    x = x - x.mean(axis=-1, keepdims=True)
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(1e-5)) * scale + shift


def attended(x: Any, p: Any) -> Any:
    """Each place with what it takes from those before it."""
    rows, length, width = x.shape
    heads = (x @ p["qkv"]).reshape(rows, length, 3, HEADS, width // HEADS)
    query, key, value = heads.transpose(2, 0, 3, 1, 4)
    scores = query @ key.transpose(0, 1, 3, 2) * np.float32((width // HEADS) ** -0.5)
    scores = np.where(np.tri(length, dtype=bool), scores, np.float32(-np.inf))
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    scores = scores / scores.sum(axis=-1, keepdims=True)
    return (scores @ value).transpose(0, 2, 1, 3).reshape(rows, length, width) @ p["out"]


def decoder(p: Any, tokens: Any) -> Any:
    """Logits of the byte behind each."""
    x = p["tokens"][tokens] + p["places"]
    for block in p["blocks"]:
        x = x + attended(normalised(x, *block["first"]), block)
        inner = normalised(x, *block["second"]) @ block["up"]
        x = x + np.maximum(inner, 0) @ block["down"]
    return normalised(x, *p["last"]) @ p["head"]


def first_parameters(rng: np.random.Generator, kinds: int, width: int, blocks: int) -> Any:
    """Weights drawn for sums over their rows; normalisations that do nothing more."""

    def drawn(rows: int, columns: int, inside: int | None = None) -> Any:
        found = rng.standard_normal((rows, columns)) / np.sqrt(inside or rows)
        return found.astype(np.float32)

    def norm() -> Any:
        return [np.ones(width, np.float32), np.zeros(width, np.float32)]

    return {
        "tokens": drawn(kinds, width, 16),
        "places": drawn(CONTEXT, width, 16),
        "blocks": [
            {
                "first": norm(),
                "second": norm(),
                "qkv": drawn(width, 3 * width),
                "out": drawn(width, width),
                "up": drawn(width, 4 * width),
                "down": drawn(4 * width, width),
            }
            for _ in range(blocks)
        ],
        "last": norm(),
        "head": drawn(width, kinds),
    }


def written(step: Any, start: str, letters: str, length: int, rng: np.random.Generator) -> str:
    """A line that goes on from `start`, drawn byte by byte with a preference for what is likely."""
    known = [letters.index(c) for c in start]
    while len(known) < length:
        seen = known[-CONTEXT:]
        row = np.zeros((1, CONTEXT), np.int64)
        row[0, : len(seen)] = seen
        logits = step.evaluate(row)[0, len(seen) - 1] / 0.7
        chances = np.exp(logits - logits.max()).astype(np.float64)
        known.append(int(rng.choice(len(letters), p=chances / chances.sum())))
    return "".join(letters[n] for n in known)


def main(steps: int, width: int, blocks: int) -> bool:
    """Train and write; whether the loss fell below that of letters drawn by how often they come."""
    rng = np.random.default_rng(0)
    pages = [p for p in sorted(GUIDES.glob("*.md")) if p.name != "reference.md"]
    whole = " ".join(p.read_text() for p in pages)
    text = " ".join("".join(c for c in whole if c.isascii()).split())
    letters = "".join(sorted({*text}))
    data = np.array([letters.index(c) for c in text])
    often = np.bincount(data) / len(data)
    blind = -(often * np.log(often)).sum()
    step = irkit.training_step(
        decoder,
        losses.softmax_cross_entropy,
        optimizers.Adam(schedules.cosine(3e-3, steps=max(steps, 2)), clip_norm=1.0),
        parameters=first_parameters(rng, len(letters), width, blocks),
        target="cpu",
    )
    begin, seen = time.perf_counter(), list[float]()
    for number in range(1, steps + 1):
        at = rng.integers(0, len(data) - CONTEXT, BATCH)[:, None] + np.arange(CONTEXT)
        seen.append(float(step(data[at], data[at + 1])))
        if number == 1 or number % max(steps // 6, 1) == 0:
            print(f"step {number:5}: loss {np.mean(seen[-20:]):.3f}", flush=True)
    spent = time.perf_counter() - begin
    print(
        f"{len(text)} letters, {steps} steps in {spent:.1f} s; letters drawn blindly: {blind:.3f}"
    )
    print(written(step, "A schedule is ", letters, 100, rng))
    return bool(np.mean(seen[-20:]) < blind)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a decoder on the guides.")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--blocks", type=int, default=2)
    given = parser.parse_args()
    raise SystemExit(0 if main(given.steps, given.width, given.blocks) else 1)
