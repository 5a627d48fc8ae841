"""The command ``freshproof``, and ``python -m orchestrator``."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command."""
    try:
        from orchestrator.cli import main as command
    except KeyboardInterrupt:  # it is not loaded yet, so there is nothing to end or to say
        sys.exit(130)
    command()


if __name__ == "__main__":
    main()
