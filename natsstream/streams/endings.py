"""Clean-up that outlives cancels of its caller, for views, which do not import the wire."""

from natsstream._wire.endings import Endings

__all__ = ["Endings"]
