"""The program `irkit-opt`."""

import sys

from irkit.driver.tools.opt import OptTool


def main() -> None:
    """Run irkit-opt on the command line's arguments and exit."""
    sys.exit(OptTool().main(sys.argv[1:]))


if __name__ == "__main__":
    main()
