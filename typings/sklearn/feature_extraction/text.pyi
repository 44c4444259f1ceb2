from collections.abc import Iterable
from typing import Any

from scipy.sparse import csr_array

class HashingVectorizer:
    def __init__(self, *, n_features: int, ngram_range: tuple[int, int]) -> None: ...
    def transform(self, texts: Iterable[str]) -> csr_array: ...

def __getattr__(name: str) -> Any: ...
