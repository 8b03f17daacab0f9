"""Types of the arrays that core works on."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
#: Labels, codes and squared distances, in the narrowest type that holds them.
Labels = npt.NDArray[np.integer[Any]]
#: Encoded rows: int16 or int32, dense or CSR; stored rows of tables are uint16.
Rows = npt.NDArray[np.int16] | npt.NDArray[np.int32] | npt.NDArray[np.uint16] | sp.csr_array
