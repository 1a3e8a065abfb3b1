"""What ops compute from their operands, as keys: equal for ops that can be one.

xDSL's `is_structurally_equivalent`, and its `cse` by it, take no notice of the types of values in regions:
`x.astype(int8).astype(int64)` and the same by way of int16 would be one where each is a region.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from xdsl.ir import Attribute, Operation, Region, SSAValue


def signature(op: Operation) -> Hashable:
    """That of an op: names, operands, attributes, properties, types of results, and what its regions do."""
    return _of_op(op, {})


def region_signature(region: Region) -> Hashable:
    """That of what stands in a region, with the types of all values in it."""
    return _of_region(region, {})


def _of_op(op: Operation, numbers: dict[SSAValue, int]) -> Hashable:
    # What is made inside has a number; what comes from outside is itself.
    operands = tuple(numbers.get(v, v) for v in op.operands)
    facts = (_facts(op.attributes), _facts(op.properties))
    regions = tuple(_of_region(region, numbers) for region in op.regions)
    return (op.name, operands, op.result_types, *facts, regions, tuple(op.successors))


def _of_region(region: Region, numbers: dict[SSAValue, int]) -> Hashable:
    blocks: list[Hashable] = []
    for block in region.blocks:
        for argument in block.args:
            numbers[argument] = len(numbers)
        blocks.append(tuple(argument.type for argument in block.args))
        for op in block.ops:
            blocks.append(_of_op(op, numbers))
            for result in op.results:
                numbers[result] = len(numbers)
    return tuple(blocks)


def _facts(given: Mapping[str, Attribute]) -> Hashable:
    return frozenset(given.items())
