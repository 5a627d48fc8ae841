"""Freshproof's tool: plans, builds, records, inspects, gates and times CUDA artifacts.

Knows nothing of proofs: it never imports ``prover`` or ``cupy``.
"""

__version__ = "0.1.0"
