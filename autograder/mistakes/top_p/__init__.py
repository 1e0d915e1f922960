"""Wrong ways to write top_p_filter and min_p_filter."""

from . import answer, end, knob, mass, min_p, order
from .common import bank

__all__ = ["answer", "bank", "end", "knob", "mass", "min_p", "order"]
