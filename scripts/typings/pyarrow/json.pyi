# The part of pyarrow.json that Spark's source uses; see __init__.pyi.
from typing import Literal

from pyarrow import BufferReader, Schema, Table

class ParseOptions:
    def __init__(
        self,
        explicit_schema: Schema | None = ...,
        *,
        unexpected_field_behavior: Literal["ignore", "error", "infer"] = ...,
    ) -> None: ...

class ReadOptions:
    def __init__(self, use_threads: bool = ..., block_size: int | None = ...) -> None: ...

def read_json(
    input_file: BufferReader, read_options: ReadOptions, parse_options: ParseOptions
) -> Table: ...
