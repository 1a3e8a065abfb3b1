"""A perceptron trained on scikit-learn's digits, to the accuracy of its MLPClassifier.

    python examples/training_digits.py

64-256-100-10 by Adam in batches of 100: each step is one program, which keeps parameters and moments. The
loss falls beside a bar; then the network, with what was trained, is compiled for inference, and compared with
NumPy.
"""

from __future__ import annotations

import time
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

import irkit
from irkit.training import layers, losses, optimizers

SIZES = (64, 256, 100, 10)
EPOCHS, BATCH = 15, 100


def network(p: Any, x: Any, key: Any = None, training: bool = False) -> Any:
    """Logits of 10 classes; while it is trained a tenth of the first layer drops out."""
    first, second, last = p
    x = np.maximum(x @ first["w"] + first["b"], 0)
    x = layers.dropout(key, x, 0.1, training=training)
    return np.maximum(x @ second["w"] + second["b"], 0) @ last["w"] + last["b"]


def start(rng: np.random.Generator) -> list[dict[str, np.ndarray]]:
    """Weights by He's rule."""
    return [
        {
            "w": (rng.standard_normal((a, b)) * np.sqrt(2 / a)).astype(np.float32),
            "b": np.zeros(b, np.float32),
        }
        for a, b in pairwise(SIZES)
    ]


def trained(x: Any, y: Any, target: str) -> Any:
    """A step that has seen all of `x` so many times as EPOCHS says."""
    rng = np.random.default_rng(0)
    step = irkit.training_step(
        network,
        losses.softmax_cross_entropy,
        optimizers.Adam(1e-3),
        parameters=start(rng),
        stop_on_nan=True,
        target=target,
    )
    begin = time.perf_counter()
    step.compile(x[:BATCH], y[:BATCH])
    print(f"\nPerceptron on digits, {target}: compiled in {time.perf_counter() - begin:.1f} s")
    columns = (TextColumn("  loss {task.fields[loss]:.4f}"), BarColumn(), TimeRemainingColumn())
    batches = len(x) // BATCH
    with Progress(*columns) as bar:
        task = bar.add_task("", total=EPOCHS * batches, loss=float("nan"))
        for _ in range(EPOCHS):
            order = rng.permutation(len(x))[: batches * BATCH].reshape(batches, BATCH)
            seen = [step(x[rows], y[rows]) for rows in order]
            bar.update(task, advance=batches, loss=float(np.mean(seen)))
    return step


def digits(target: str = "cpu") -> bool:
    """Train, and compare with scikit-learn; whether accuracy and answers are as they should be."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier

    x, y = load_digits(return_X_y=True)
    x = (x / 16).astype(np.float32)
    x, held, y, wanted = train_test_split(x, y, test_size=0.3, random_state=0)
    begin = time.perf_counter()
    step = trained(x, y, target)
    ours = time.perf_counter() - begin
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it would go on
        peer = MLPClassifier(SIZES[1:-1], batch_size=BATCH, max_iter=EPOCHS, random_state=0)
        peer.fit(x, y)
    theirs = time.perf_counter() - begin
    logits = step.evaluate(held)
    accuracy, score = (logits.argmax(axis=1) == wanted).mean(), peer.score(held, wanted)
    off = np.abs(logits - network(step.parameters, held)).max()
    print(f"  accuracy               irkit {accuracy:.4f}   MLPClassifier {score:.4f}")
    print(f"  seconds with compiling irkit {ours:.1f}   MLPClassifier {theirs:.1f}")
    print(f"  inference              compiled, logits differ from NumPy's by at most {off:.1e}")
    return bool(accuracy >= score - 0.01 and off < 1e-3)


if __name__ == "__main__":
    raise SystemExit(0 if digits() else 1)
