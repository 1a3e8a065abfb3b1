"""ONNX Runtime in a process of its own: a broken model may crash it, and with it all that runs beside."""

from __future__ import annotations

import multiprocessing
from functools import cache
from multiprocessing.connection import Connection
from typing import Any

_CONTEXT = multiprocessing.get_context("spawn")
_SECONDS = 60.0
_READY = "ready"


def _serve(requests: Connection) -> None:
    """Answer requests until there are no more."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = 1
    requests.send(_READY)
    while True:
        try:
            model, inputs = requests.recv()
        except EOFError:
            return
        try:
            found = onnxruntime.InferenceSession(model, settings).run(None, inputs)
        except Exception:  # ONNX Runtime has kinds of its own for what it refuses
            found = None
        requests.send(found)


class Peer:
    """A process that runs models, started when the first comes, and anew where one ends it."""

    def __init__(self) -> None:
        self._process: Any = None
        self._requests: Connection | None = None

    def outputs(self, model: bytes, inputs: dict[str, Any]) -> list[Any] | None:
        """What ONNX Runtime makes of a model; None where it refuses it, crashes, or takes a minute.

        Raises RuntimeError where ONNX Runtime itself does not start.
        """
        try:
            requests = self._requests or self._start()
            requests.send((model, inputs))
            if requests.poll(_SECONDS):
                return requests.recv()
        except (EOFError, ConnectionError):
            pass
        except BaseException:
            # A time limit, say: what is answered late is no answer to what comes next.
            self.end()
            raise
        self.end()
        return None

    def _start(self) -> Connection:
        self._requests, other = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_serve, args=(other,), daemon=True)
        self._process.start()
        # Its end is then told to this one.
        other.close()
        try:
            ready = self._requests.recv() == _READY
        except EOFError:
            ready = False
        if not ready:
            raise RuntimeError("the process of ONNX Runtime does not start")
        return self._requests

    def end(self) -> None:
        """End the process, if any."""
        if self._requests is None:
            return
        self._requests.close()
        self._process.kill()
        self._process.join()
        self._requests = None


@cache
def peer() -> Peer:
    """The one of this process."""
    return Peer()
