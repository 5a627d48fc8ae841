"""Transforms over Fr on the GPU: the tables of one domain, and the launches of a plan's passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from prover.backends import ntt_plan
from prover.backends.cuda_device import Buffer, Memory, Stream
from prover.backends.cuda_module import LoadedModule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prover.backends.ntt_plan import FactorTable, Pass
    from prover.params import Curve

_TABLE_BLOCK = 128
_TABLE_GRID = 2048


class Ntt:
    """Transforms of one length. Tables are made by `prepare`; `run` allocates nothing."""

    def __init__(
        self, module: LoadedModule, curve: Curve, log_n: int, memory: Memory, stream: Stream
    ) -> None:
        self._module = module
        self._curve = curve
        self._memory = memory
        self.log_n = log_n
        self._kernels = {b: module.kernel(f"ntt_pass_{b}") for b in range(ntt_plan.MIN_BITS, 10)}
        self._direct = module.kernel("ntt_direct")
        self._tables: dict[FactorTable, Buffer] = {}
        self._twiddles: dict[int, Buffer] = {}
        self._stream = stream

    @staticmethod
    def need(passes: Sequence[Pass]) -> int:
        """Bytes of the tables that `prepare` will make for a plan, within a few hundred KiB."""
        return sum(t.nbytes for t in ntt_plan.tables(passes)) + (1 << 20)

    def prepare(self, passes: Sequence[Pass]) -> None:
        """Make what a plan reads. Raises `Missing` when memory does not suffice."""
        for step in passes:
            if step.bits not in self._twiddles:
                self._twiddles[step.bits] = self._upload_twiddles(step.bits)
        missing = [t for t in ntt_plan.tables(passes) if t not in self._tables]
        if missing:
            self._make_tables(missing)

    def release(self) -> None:
        """Give the tables' memory back; nothing may run any more."""
        for buffer in (*self._tables.values(), *self._twiddles.values()):
            self._memory.free(buffer)
        self._tables.clear()
        self._twiddles.clear()

    def run(self, passes: Sequence[Pass], data: Buffer, work: Buffer, vectors: int, stream: Stream) -> None:
        """Transform ``vectors`` vectors of 2^log_n elements that lie side by side in ``data``, in place.

        ``work`` is as large as ``data``. Montgomery form in and out, natural order.
        """
        source = data
        for at, step in enumerate(passes):
            if step.bits < ntt_plan.MIN_BITS:
                self._launch_direct(step, data, vectors, stream)
                continue
            ends = at + 1 == len(passes) or passes[at + 1].log_s == 0
            target = data if ends else (work if source is data else data)
            self._launch(step, target, source, vectors, stream)
            source = target

    def _launch(self, step: Pass, out: Buffer, source: Buffer, vectors: int, stream: Stream) -> None:
        tile = ntt_plan.Tile.of(step.bits)
        columns = 1 << (self.log_n - step.bits)
        args = (
            out,
            source,
            self._tables[step.table] if step.table else 0,
            self._twiddles[step.bits],
            np.uint32(self.log_n),
            np.uint32(step.log_s),
            np.uint32(step.table.log_f if step.table else 0),
            np.uint32(step.flip),
        )
        grid = (-(-columns // tile.columns), vectors)
        self._kernels[step.bits](grid, tile.threads, args, stream, shared=tile.shared_bytes)

    def _launch_direct(self, step: Pass, data: Buffer, vectors: int, stream: Stream) -> None:
        args = (
            data,
            self._tables[step.table] if step.table else 0,
            self._twiddles[step.bits],
            np.uint32(step.bits),
            np.uint32(step.flip),
        )
        self._direct((1, vectors), 1, args, stream)

    def _upload_twiddles(self, bits: int) -> Buffer:
        if bits < ntt_plan.MIN_BITS:
            values = ntt_plan.direct_roots(self._curve, bits)
        else:
            values = ntt_plan.round_twiddles(self._curve, bits)
        buffer = self._memory.allocate(values.nbytes, "NTT twiddles")
        buffer.upload(values, self._stream)
        return buffer

    def _make_tables(self, missing: Sequence[FactorTable]) -> None:
        powers = ntt_plan.power_tables(self._curve, self.log_n)
        sources = {}
        for name in ("low", "high", "one", "one_over_n"):
            values = getattr(powers, name)
            sources[name] = self._memory.allocate(values.nbytes, "powers of a root of unity")
            sources[name].upload(values, self._stream)
        kernel = self._module.kernel("ntt_factors")
        for table in missing:
            out = self._memory.allocate(table.nbytes, f"NTT factors of 2^{table.log_entries} entries")
            args = (
                out,
                sources["low"],
                sources["high"],
                sources["one_over_n" if table.scaled else "one"],
                *(
                    np.uint32(v)
                    for v in (powers.log_low, table.log_entries, table.log_f, table.alpha, table.beta)
                ),
            )
            kernel(_TABLE_GRID, _TABLE_BLOCK, args, self._stream)
            self._tables[table] = out
        self._stream.synchronize()
        for buffer in sources.values():
            self._memory.free(buffer)
