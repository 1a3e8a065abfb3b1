"""The program `irkit-translate`."""

import sys

from irkit.driver.tools.translate import TranslateTool


def main() -> None:
    """Run irkit-translate on the command line's arguments and exit."""
    sys.exit(TranslateTool().main(sys.argv[1:]))


if __name__ == "__main__":
    main()
