"""irkit's dialects and passes as an xDSL universe, so that plain `xdsl-opt` sees them."""

from xdsl.transforms import get_all_passes
from xdsl.universe import Universe

from irkit.driver.registry import irkit_dialects, irkit_passes

# xDSL refuses two passes of one name, so irkit's own `cse` or `dce` would hide behind xDSL's there.
IRKIT_UNIVERSE = Universe(
    all_dialects=irkit_dialects(),
    all_passes={n: f for n, f in irkit_passes().items() if n not in get_all_passes()},
)
