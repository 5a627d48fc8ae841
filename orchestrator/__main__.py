"""``python -m orchestrator``: the freshproof command where no console script is installed."""

from orchestrator.cli import main

main()
