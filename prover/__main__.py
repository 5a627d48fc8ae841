"""The command ``groth16``, and ``python -m prover``."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command."""
    try:
        from prover.cli import main as command
    except KeyboardInterrupt:  # it is not loaded yet, so there is nothing to end or to say
        sys.exit(130)
    command()


if __name__ == "__main__":
    main()
