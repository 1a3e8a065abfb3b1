"""Inputs of a call, wherever they are, as arrays on the device that a program can take."""

from __future__ import annotations

import math
from typing import Any

from irkit.runtime.cuda import arrays, driver
from irkit.runtime.cuda.driver import order
from irkit.runtime.cuda.extent import RESULT_BYTES, extent_probe
from irkit.runtime.cuda.memory import Pool
from irkit.runtime.input_policy import InputPolicy


class Inputs:
    """Those of one program. Raises InvalidInputError for what it cannot take."""

    def __init__(self, policy: InputPolicy, pool: Pool) -> None:
        self._policy, self._pool = policy, pool

    def bind(self, number: int, value: Any, stream: Any) -> arrays.Bound:
        """Input `number`, copied to the device unless it is there."""
        if arrays.on_device(value):
            return self._on_device(number, value, stream)
        host = self._policy.host_array(number, value)
        buffer = self._pool.take(host.nbytes)
        if host.size:
            buffer.upload(host, stream)
        return arrays.Bound(buffer.address, host.shape, buffer)

    def _on_device(self, number: int, value: Any, stream: Any) -> arrays.Bound:
        facts = arrays.device_facts(value)
        self._policy.check_device_array(number, facts)
        if facts.producer is not None and facts.producer != (int(stream) or 1):
            order(driver.api().CUstream(facts.producer), stream)
        if self._policy.restricts(number):
            count = math.prod(facts.shape)
            result = self._pool.take(RESULT_BYTES)
            probe = extent_probe(self._pool.device)
            extent = probe(facts.address, count, str(facts.dtype), result, stream)
            self._policy.check_extent(number, extent, lambda: arrays.host_copy(facts, stream))
        return arrays.Bound(facts.address, facts.shape, value)
