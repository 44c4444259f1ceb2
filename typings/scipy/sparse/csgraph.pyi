import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

def connected_components(
    csgraph: csr_array, *, directed: bool = True
) -> tuple[int, NDArray[np.int32]]: ...
