"""``python -m prover``: the groth16 command where no console script is installed."""

from prover.cli import main

main()
