"""A recurrent network on a stream: one sample a call, its state kept by the program.

    python examples/streaming.py

An ONNX GRU takes the state that it starts from as an input, `h0`, and gives the one that it ends with as an
output, `hn`. `irkit.compile(state={"h0": "hn"})` makes the two one: the program keeps it between calls, and
a call takes a sample and gives the network's answer. The schedule is proved to leave the new state
where the next call finds it (docs/schedule.md).

What is shown: the stream's answers are those of the whole signal at once; a program that is saved in the
middle goes on bit for bit; the state can be read, set and put back.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

import irkit

STEPS, CHANNELS, UNITS = 60, 4, 16


def network(steps: int) -> ModelProto:
    """A GRU over `steps` samples, and a score of each of its outputs."""
    rng = np.random.default_rng(0)
    arrays = {
        "w": 0.4 * rng.standard_normal((1, 3 * UNITS, CHANNELS)),
        "r": 0.4 * rng.standard_normal((1, 3 * UNITS, UNITS)),
        "b": 0.1 * rng.standard_normal((1, 6 * UNITS)),
        "v": rng.standard_normal((UNITS, 1)),
    }
    nodes = [
        helper.make_node("GRU", ["x", "w", "r", "b", "", "h0"], ["y", "hn"], hidden_size=UNITS),
        helper.make_node("MatMul", ["y", "v"], ["z"]),
        helper.make_node("Sigmoid", ["z"], ["score"]),
    ]
    kind, value = TensorProto.FLOAT, helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "gru",
        [value("x", kind, [steps, 1, CHANNELS]), value("h0", kind, [1, 1, UNITS])],
        [value("score", kind, [steps, 1, 1, 1]), value("hn", kind, [1, 1, UNITS])],
        [numpy_helper.from_array(a.astype(np.float32), n) for n, a in arrays.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main() -> None:
    """Compare a stream with the whole signal, and stop and go on in the middle of it."""
    signal = np.random.default_rng(1).standard_normal((STEPS, 1, CHANNELS)).astype(np.float32)
    whole = irkit.compile(network(STEPS), target="cpu")
    scores, last = whole(signal, np.zeros((1, 1, UNITS), np.float32))

    stream = irkit.compile(network(1), target="cpu", state={"h0": "hn"})
    half = STEPS // 2
    found = [stream(sample[None]) for sample in signal[:half]]
    with tempfile.TemporaryDirectory() as folder:
        stream.save(Path(folder) / "stream.irkit")
        resumed = irkit.load(Path(folder) / "stream.irkit")
    for sample in signal[half:]:
        found.append(stream(sample[None]))
        assert resumed(sample[None]).tobytes() == found[-1].tobytes()
    np.testing.assert_allclose(np.concatenate(found), scores, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(stream.state["h0"], last, rtol=1e-5, atol=1e-6)

    stream.state.reset()
    again = stream(signal[:1])
    assert again.tobytes() == found[0].tobytes()
    print(f"{STEPS} samples, one a call: the scores of the whole signal; resumed bit for bit")


if __name__ == "__main__":
    main()
