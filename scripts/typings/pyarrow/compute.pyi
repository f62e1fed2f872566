# The part of pyarrow.compute that the quickstart uses; see __init__.pyi.
from typing import Literal

from pyarrow import ChunkedArray

def binary_join_element_wise(
    *strings: ChunkedArray | str,
    null_handling: Literal["emit_null", "skip", "replace"] = ...,
    null_replacement: str = ...,
) -> ChunkedArray: ...
def replace_substring(strings: ChunkedArray, *, pattern: str, replacement: str) -> ChunkedArray: ...
