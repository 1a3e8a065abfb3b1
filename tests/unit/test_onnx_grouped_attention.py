"""com.microsoft's GroupQueryAttention against ONNX Runtime; heads that share keys in ONNX's own Attention."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import irkit
from irkit.errors import UnsupportedError

SLOTS = ["q", "k", "v", "pk", "pv", "lens", "total", "cos", "sin", "pos", "bias", "sink"]
OUTPUTS = ["y", "nk", "nv"]


def session(proto_bytes: bytes) -> Any:
    """ONNX Runtime, whose results have many types."""
    return onnxruntime.InferenceSession(proto_bytes)


def normal(rng: np.random.Generator, *shape: int) -> Any:
    return rng.standard_normal(shape).astype(np.float32)


@dataclass
class Step:
    """One call: `lens` tokens after it, `room` places of the cache before it (None: there is no cache)."""

    lens: list[int]
    steps: int = 1
    heads: int = 6
    shared: int = 2
    size: int = 16
    room: int | None = 9
    pairs: int = 0
    packed: bool = False
    known: tuple[str, ...] = ("total",)
    extra: tuple[str, ...] = ()
    positions: Any = None
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    seed: int = 0

    @property
    def total(self) -> int:
        return max(self.lens)

    def arrays(self) -> dict[str, Any]:
        rng, batch = np.random.default_rng(self.seed), len(self.lens)
        width, own = self.heads * self.size, self.shared * self.size
        made: dict[str, Any] = {"q": normal(rng, batch, self.steps, width)}
        if self.packed:
            made["q"] = normal(rng, batch, self.steps, width + 2 * own)
        else:
            made |= {k: normal(rng, batch, self.steps, own) for k in "kv"}
        if self.room is not None:
            cache = (batch, self.shared, self.room, self.size)
            made |= {k: normal(rng, *cache) for k in ("pk", "pv")}
        made["lens"] = np.array(self.lens, np.int32) - 1
        made["total"] = np.array(self.total, np.int32)
        if self.pairs:
            angle = rng.uniform(0, 6, (max(self.total, self.room or 0) + 2, self.pairs))
            made |= {k: f(angle).astype(np.float32) for k, f in (("cos", np.cos), ("sin", np.sin))}
        if self.positions is not None:
            made["pos"] = np.array(self.positions, np.int64)
        if "bias" in self.extra:
            made["bias"] = normal(rng, 1, self.heads, self.steps, self.total)
        if "sink" in self.extra:
            made["sink"] = normal(rng, self.heads)
        return made

    def model(self, arrays: dict[str, Any], batch: str | None = None) -> tuple[Any, dict[str, Any]]:
        known = {k: a for k, a in arrays.items() if k in (*self.known, "cos", "sin")}
        given = {k: a for k, a in arrays.items() if k not in known}
        inputs = [s if s in arrays else "" for s in SLOTS]
        while not inputs[-1]:
            inputs.pop()
        node = helper.make_node(
            "GroupQueryAttention", inputs, OUTPUTS, domain="com.microsoft", num_heads=self.heads,
            kv_num_heads=self.shared, do_rotary=int(self.pairs > 0), **self.attributes,
        )  # fmt: skip
        declared = [
            helper.make_tensor_value_info(
                k,
                helper.np_dtype_to_tensor_dtype(a.dtype),
                [batch, *a.shape[1:]] if batch and a.ndim else a.shape,
            )
            for k, a in given.items()
        ]
        graph = helper.make_graph(
            [node], "g", declared,
            [helper.make_tensor_value_info(n, 1, None) for n in OUTPUTS],
            [numpy_helper.from_array(a, k) for k, a in known.items()],
        )  # fmt: skip
        domains = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=domains, ir_version=10), given


def judged(step: Step) -> str:
    """Against ONNX Runtime, of which padding and the cache behind the last token are left open."""
    proto, given = step.model(step.arrays())
    program = irkit.compile(proto, "cpu")
    got = program(*given.values())
    compare(step, got, session(proto.SerializeToString()).run(None, given))
    return program.ir("graph")


def compare(step: Step, got: Any, want: Any) -> None:
    assert [a.shape for a in got] == [a.shape for a in want]
    for b, tokens in enumerate(step.lens):
        new = min(step.steps, tokens)
        np.testing.assert_allclose(got[0][b, :new], want[0][b, :new], rtol=3e-6, atol=5e-6)
        for a, c in zip(got[1:], want[1:], strict=True):
            np.testing.assert_allclose(a[b, :, :tokens], c[b, :, :tokens], rtol=1e-6, atol=2e-6)


CASES = {
    "prompt": Step([5, 3], 5, room=None),
    "prompt, turned": Step([5, 3], 5, room=None, pairs=8),
    "prompt into a cache": Step([5, 3], 5, pairs=8),
    "prompt into a cache, not known to be one": Step([5, 3], 5, pairs=8, known=()),
    "token": Step([5, 9], pairs=8),
    "token, the longest unknown": Step([5, 9], pairs=8, known=()),
    "first token": Step([1, 1], pairs=8, known=()),
    "token of a cache that grows": Step([5, 10], pairs=8),
    "lengths known": Step([7], 3, pairs=8, known=("total", "lens")),
    "a cache that grows by what is known": Step([9], 3, room=6, known=("total", "lens")),
    "chunk": Step([7], 3, pairs=8),
    "chunk, the longest unknown": Step([9], 3, pairs=8, known=()),
    "packed": Step([5, 9], packed=True, pairs=8, attributes={"rotary_interleaved": 1}),
    "packed prompt": Step([5, 5], 5, room=None, packed=True),
    "turned in part": Step([5, 9], size=32, pairs=8),
    "positions": Step([5, 7], pairs=8, positions=[[3], [6]]),
    "positions of a prompt": Step([3, 3], 3, room=None, pairs=8, positions=[[2, 7, 7]] * 2),
    "window of 1": Step([5, 9], attributes={"local_window_size": 1}),
    "window of 3": Step([5, 9], attributes={"local_window_size": 3}),
    "window of a prompt": Step([7, 7], 7, room=None, attributes={"local_window_size": 3}),
    "capped": Step([5, 3], 5, room=None, attributes={"softcap": 2.0}),
    "capped token": Step([5, 9], attributes={"softcap": 2.0, "scale": 0.4}),
    "smooth": Step([5, 9], attributes={"smooth_softmax": 1}),
    "sink": Step([5, 5], 5, room=None, extra=("sink",)),
    "sink of a token": Step([5, 9], extra=("sink",)),
    "bias": Step([5, 5], 5, room=None, extra=("bias",)),
    "bias of a token": Step([5, 7], extra=("bias",)),
    "bias, capped": Step([5, 5], 5, room=None, extra=("bias",), attributes={"softcap": 2.0}),
    "not causal": Step([5, 5], 5, shared=1, room=None, attributes={"causal": 0}),
    "as many heads": Step([5, 9], shared=6, pairs=8),
    "one head": Step([5, 9], heads=1, shared=1),
}


@pytest.mark.parametrize("name", CASES)
def test_against_onnx_runtime(name: str) -> None:
    text = judged(CASES[name])
    plain = not {"softcap", "smooth_softmax"} & CASES[name].attributes.keys()
    assert ("graph.attention" in text) == (plain and "sink" not in CASES[name].extra)


@pytest.mark.parametrize("seed", range(12))
def test_random_steps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shared, group = (int(n) for n in rng.integers(1, 4, 2))
    room = int(rng.integers(4, 40))
    steps = int(rng.choice([1, 1, int(rng.integers(2, room + 1))]))
    count = int(rng.integers(1, 4)) if steps == 1 else 1
    lens = [int(n) for n in rng.integers(steps, room + 1, count)]
    step = Step(
        lens, steps, shared * group, shared, int(rng.choice([16, 32])), room, int(rng.choice([0, 8])),
        bool(rng.integers(2)), ((), ("total",), ("total", "lens"))[seed % 3], seed=seed,
    )  # fmt: skip
    judged(step)


def test_an_open_batch() -> None:
    step = Step([5, 9], pairs=8, known=())
    proto, _ = step.model(step.arrays(), batch="batch")
    program = irkit.compile(proto, "cpu")
    judge = session(proto.SerializeToString())
    for lens in ([4], [2, 9, 7]):
        step = Step(lens, pairs=8, known=(), seed=len(lens))
        given = {k: a for k, a in step.arrays().items() if k not in ("cos", "sin")}
        # Cosines and sines are the model's own.
        compare(step, program(*given.values()), judge.run(None, given))


def test_a_step_that_does_not_fit_is_not_a_number() -> None:
    step = Step([5, 9, 10], pairs=8, known=())
    proto, given = step.model(step.arrays())
    y = irkit.compile(proto, "cpu")(*given.values())[0]
    assert [bool(np.isnan(row).all()) for row in y] == [False, False, True]
    assert not np.isnan(y[:2]).any()


def test_the_cache_as_state_is_written_in_place() -> None:
    step = Step([1], heads=4, shared=2, room=7, pairs=8, known=())
    arrays = step.arrays()
    proto, given = step.model(arrays)
    program = irkit.compile(proto, device="cpu1", state={"pk": "nk", "pv": "nv"})
    text = program.ir("schedule")
    assert text.count('space = "state"') == 2
    kept = [np.zeros_like(given["pk"]), np.zeros_like(given["pv"])]
    judge = session(proto.SerializeToString())
    for token in range(7):
        fresh = Step([token + 1], heads=4, shared=2, room=7, pairs=8, known=(), seed=token + 1)
        now = {k: a for k, a in fresh.arrays().items() if k in given and k not in ("pk", "pv")}
        y = np.asarray(program(*now.values()))
        want, *kept = judge.run(None, {**now, "pk": kept[0], "pv": kept[1]})
        np.testing.assert_allclose(y, want, rtol=3e-6, atol=5e-6)


def test_keys_of_attention_are_not_repeated() -> None:
    """ONNX's own operator: its body repeats them."""
    rng = np.random.default_rng(0)
    for rows, causal in ((1, 1), (5, 1), (5, 0), (1, 0)):
        given = {"q": normal(rng, 2, 6, rows, 8), **{k: normal(rng, 2, 2, 7, 8) for k in "kv"}}
        node = helper.make_node("Attention", list(given), ["y"], is_causal=causal)
        declared = [helper.make_tensor_value_info(k, 1, a.shape) for k, a in given.items()]
        graph = helper.make_graph(
            [node], "g", declared, [helper.make_tensor_value_info("y", 1, None)]
        )
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
        program = irkit.compile(proto, "cpu")
        text = program.ir("graph")
        assert "graph.expand" not in text
        assert text.count("graph.attention") == 1
        (want,) = session(proto.SerializeToString()).run(None, given)
        np.testing.assert_allclose(program(*given.values()), want, rtol=3e-6, atol=5e-6)


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (Step([5], shared=4), "kv_num_heads = 4: it does not divide 6 heads"),
        (Step([5], attributes={"sliding_window_cache": 1}), "sliding_window_cache = 1"),
        (Step([5], attributes={"k_quant_type": "PER_TENSOR"}), "k_quant_type"),
        (Step([5], 3, room=None), "total_sequence_length = 5: 3 steps have no past"),
        (Step([5], attributes={"qk_output": 1}), "qk_output = 1"),
    ],
)
def test_what_is_refused(step: Step, reason: str) -> None:
    proto, _ = step.model(step.arrays())
    with pytest.raises(UnsupportedError, match=reason):
        irkit.compile(proto, "cpu")
