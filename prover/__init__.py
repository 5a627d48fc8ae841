"""A Groth16 prover over BN254 and BLS12-381 whose heavy arithmetic is this project's own CUDA code."""
