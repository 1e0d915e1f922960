"""Where a learner's code runs: a warm parent forks a child per run, which nothing lets out."""

from .children import Child, Ended
from .limits import Limits
from .parent import WarmParent
from .process import SandboxError

__all__ = ["Child", "Ended", "Limits", "SandboxError", "WarmParent"]
