"""A.w and B.w on the GPU: a key's matrices, resident."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from prover.backends.cuda_device import Buffer, Stream
    from prover.backends.cuda_module import LoadedModule
    from prover.backends.cuda_staging import Staging
    from prover.backends.sparse_plan import CompressedRows

from prover.backends.sparse_plan import ALIGNMENT, ARRAYS, ROW_LIMIT, Column
from prover.params import SCALAR_BYTES

BLOCK = 128


class SparseProducts:
    """Both matrices of one key over a domain of n points."""

    def __init__(
        self,
        module: LoadedModule,
        rows: CompressedRows,
        n: int,
        room: Buffer,
        staging: Staging,
        stream: Stream,
    ) -> None:
        """``room``: as much as `sparse_plan.most_bytes` says. It is reserved before, with all else."""
        self._n = n
        self._long_rows = len(rows.long_rows)
        self._segments = len(rows.segment_starts)
        self._kernels = {k: module.kernel(f"sparse_{k}") for k in ("rows", "segments", "combine")}
        self._at: dict[str, Buffer] = {}
        end = 0
        for name in ARRAYS:
            array = getattr(rows, name)
            self._at[name] = room.part(end, array.nbytes)
            upload = staging.upload_made if isinstance(array, Column) else staging.upload
            upload(array, self._at[name], stream)
            end += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
        self._partials = room.part(end, SCALAR_BYTES * self._segments)

    def run(self, witness: Buffer, out: Buffer, stream: Stream) -> None:
        """``out`` (2n elements, Montgomery form) = A.w, then B.w, for a witness in standard form."""
        at, n = self._at, np.uint32(self._n)
        entries = (at["wires"], at["values"], witness)
        args = (out, at["starts"], *entries, n, np.uint32(ROW_LIMIT))
        self._kernels["rows"](-(-2 * self._n // BLOCK), BLOCK, args, stream)
        if not self._segments:
            return
        segments = (self._partials, at["segment_starts"], at["segment_ends"], *entries)
        self._kernels["segments"](self._segments, BLOCK, segments, stream)
        long_rows = (out, at["long_rows"], at["first_segments"], np.uint32(self._long_rows))
        grid = -(-self._long_rows // BLOCK)
        self._kernels["combine"](grid, BLOCK, (*long_rows, self._partials, n), stream)

    def scrub(self, stream: Stream) -> None:
        """Overwrite the sums that depend on a witness."""
        self._partials.fill(0, stream)
