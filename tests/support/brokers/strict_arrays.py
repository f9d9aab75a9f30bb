"""A pytest plugin that finds what compiled kernels would do silently: any access outside of an array raises.

    NUMBA_DISABLE_JIT=1 python -m pytest -p tests.support.brokers.strict_arrays tests/properties

runs the kernels as plain Python over arrays that also refuse what numpy allows: positions counted from the end and
slices that are cut short.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from heliograph.wire.batches import codecs, forward, kernel_bytes, rewrite, scan

assert numba.config.DISABLE_JIT, "compiled kernels do not see these arrays; set NUMBA_DISABLE_JIT=1"


class StrictArray(np.ndarray):
    def __getitem__(self, index: Any) -> Any:
        self._check(index)
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._check(index)
        super().__setitem__(index, value)

    def _check(self, index: Any) -> None:
        for size, part in zip(self.shape, index if isinstance(index, tuple) else (index,), strict=False):
            if isinstance(part, slice):
                start, stop = part.start or 0, size if part.stop is None else part.stop
                is_inside = 0 <= start <= stop <= size
            else:
                is_inside = not isinstance(part, int | np.integer) or 0 <= part < size
            if not is_inside:
                raise IndexError(f"{part} is outside of an array of {size}")


class StrictNumpy:
    """numpy, except that new arrays are strict."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if name not in ("empty", "zeros", "frombuffer", "array", "concatenate"):
            return found
        return lambda *args, **kwargs: found(*args, **kwargs).view(StrictArray)


for module in (codecs, forward, kernel_bytes, rewrite, scan):
    module.np = StrictNumpy()  # type: ignore[attr-defined]
