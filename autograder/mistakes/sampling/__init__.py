"""Wrong ways to write greedy, inverse_cdf, sample and next_token."""

from . import cdf, draws, greedy, next_token, steps
from .common import bank

__all__ = ["bank", "cdf", "draws", "greedy", "next_token", "steps"]
