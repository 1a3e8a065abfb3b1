"""ONNX Runtime beside the fuzzer of ONNX models: what ends it ends nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from tools.fuzz import onnx_peer

pytest.importorskip("onnxruntime")


@pytest.fixture
def peer() -> Iterator[onnx_peer.Peer]:
    made = onnx_peer.Peer()
    yield made
    made.end()


def doubled() -> bytes:
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, (3,)) for n in "xy"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "g", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


class Crash:
    """Ends the process that reads it, as a broken model may."""

    def __reduce__(self) -> Any:
        return os._exit, (11,)


X = np.arange(3, dtype=np.float32)


def test_a_model_that_ends_the_process_has_no_outputs_and_the_next_one_has(
    peer: onnx_peer.Peer,
) -> None:
    for _ in range(2):
        (found,) = peer.outputs(doubled(), {"x": X}) or ()
        np.testing.assert_array_equal(found, 2 * X)
        assert peer.outputs(doubled(), {"x": Crash()}) is None
    assert peer.outputs(b"no model", {"x": X}) is None
    assert peer.outputs(doubled(), {"x": X}) is not None


def test_a_model_that_takes_too_long_has_none(
    peer: onnx_peer.Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_peer, "_SECONDS", 0.0)
    assert peer.outputs(doubled(), {"x": X}) is None
    monkeypatch.undo()
    assert peer.outputs(doubled(), {"x": X}) is not None


class Interrupted(BaseException):
    pass


def test_an_interrupted_request_is_not_answered_later(
    peer: onnx_peer.Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert peer.outputs(doubled(), {"x": X}) is not None

    class Late(float):
        """Seconds that end in an interrupt."""

        def __radd__(self, other: float) -> float:
            raise Interrupted

    monkeypatch.setattr(onnx_peer, "_SECONDS", Late())
    with pytest.raises(Interrupted):
        peer.outputs(doubled(), {"x": X + 1})
    monkeypatch.undo()
    (found,) = peer.outputs(doubled(), {"x": X}) or ()
    np.testing.assert_array_equal(found, 2 * X)


def test_what_does_not_start_at_all_is_said(
    peer: onnx_peer.Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_peer, "_serve", os._exit)
    with pytest.raises(RuntimeError, match="does not start"):
        peer.outputs(doubled(), {"x": X})
