# The part of pandas that natsstream uses; pandas ships no types.
from typing import Any

class DataFrame:
    columns: Any
    def __len__(self) -> int: ...
    def __getitem__(self, key: str) -> Any: ...
