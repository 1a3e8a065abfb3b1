"""The registry of rKernels: which there are for a target and a root.

This module and the tables it reads import no Numba. A user registers an rKernel of their own with
`register`, and a family of them with `irkit.rkernels.families.register`.
"""

from __future__ import annotations

import importlib
import pkgutil
import threading
from collections.abc import Iterable

from irkit.dialects.roperator_root import Root
from irkit.errors import UnsupportedError
from irkit.rkernels.families import families_for
from irkit.rkernels.families import find as find_family
from irkit.rkernels.rkernel import RKernel, Target

_REGISTERED: dict[tuple[Target, str], list[RKernel]] = {}
_loaded: set[Target] = set()
_loading = threading.RLock()


def register(rkernel: RKernel) -> RKernel:
    """Add an rKernel; the newest of a name wins."""
    known = _REGISTERED.setdefault((rkernel.target, rkernel.family), [])
    known[:] = [k for k in known if k.variant != rkernel.variant]
    known.append(rkernel)
    return rkernel


def _load(target: Target) -> None:
    if target in _loaded:
        return
    with _loading:
        known = {k.name for k in _known(target)}
        for rkernel in _own(target):
            # What a user has registered before is newer.
            if rkernel.name not in known:
                register(rkernel)
        # Last: an interrupt may have come at any import.
        _loaded.add(target)


def _own(target: Target) -> list[RKernel]:
    package = importlib.import_module(f"irkit.rkernels.{target}")
    found = list[RKernel]()
    for entry in sorted(pkgutil.iter_modules(package.__path__), key=lambda m: m.name):
        kernels: Iterable[RKernel] = importlib.import_module(
            f"{package.__name__}.{entry.name}"
        ).RKERNELS
        found.extend(kernels)
    return found


def _known(target: Target) -> list[RKernel]:
    return [k for (t, _), kernels in _REGISTERED.items() if t == target for k in kernels]


def registered(target: Target) -> list[RKernel]:
    """All rKernels for `target`, by name."""
    _load(target)
    return sorted(_known(target), key=lambda k: k.name)


def candidates(target: Target, root: Root) -> list[RKernel]:
    """rKernels that can compute `root` on `target`, those of its own family first.

    Raises UnsupportedError if there is none.
    """
    _load(target)
    found = [
        k
        for family in families_for(root)
        for k in _REGISTERED.get((target, family.name), ())
        if k.legal(root)
    ]
    if not found:
        reason = find_family(root.family).refuses(root)
        why = f": {reason}" if reason is not None else ""
        raise UnsupportedError(f"no rKernel of family '{root.family}' for {target}{why}")
    return found


def find(target: Target, name: str) -> RKernel:
    """The rKernel called `family.variant`. Raises UnsupportedError if there is none."""
    known = {k.name: k for k in registered(target)}
    if name not in known:
        raise UnsupportedError(f"rKernel '{name}' for {target}; there are {', '.join(known)}")
    return known[name]
