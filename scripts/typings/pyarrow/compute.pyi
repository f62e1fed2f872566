# The part of pyarrow.compute that natsstream uses; see __init__.pyi.
from typing import Literal

from pyarrow import Array, ChunkedArray, Scalar

def all(array: Array) -> Scalar: ...  # noqa: A001 - pyarrow's name.
def any(array: Array) -> Scalar: ...  # noqa: A001 - pyarrow's name.
def binary_join_element_wise(
    *strings: ChunkedArray | str,
    null_handling: Literal["emit_null", "skip", "replace"] = ...,
    null_replacement: str = ...,
) -> ChunkedArray: ...
def is_inf(values: Array) -> Array: ...
def match_substring_regex(strings: Array, pattern: str) -> Array: ...
def replace_substring(strings: ChunkedArray, *, pattern: str, replacement: str) -> ChunkedArray: ...
