"""JavaScript's `undefined`: no value, where None is the value null."""

from __future__ import annotations

from typing import Final, Literal, final


@final
class Undefined:
    """The class of `UNDEFINED`, its only instance, also after copying and pickling."""

    __slots__ = ()

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return "UNDEFINED"

    def __reduce__(self) -> str:
        # Copies and pickles name it, and so are itself.
        return "UNDEFINED"


UNDEFINED: Final = Undefined()
"""No value: publishing it under a key deletes the key, where None is stored as null."""
