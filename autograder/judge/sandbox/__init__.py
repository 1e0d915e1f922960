"""Where a learner's code runs: a warm parent forks a child per run, which nothing lets out."""

from .driver import Child, Ended, SandboxError, WarmParent
from .limits import Limits

__all__ = ["Child", "Ended", "Limits", "SandboxError", "WarmParent"]
