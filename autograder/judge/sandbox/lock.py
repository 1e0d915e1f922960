"""How a child is locked down, in the only order that works.

Each step needs what a later one takes away: descriptors are closed while the limits still allow
their number, the user is changed while there is a capability for it, and system calls are filtered
last, as all the others are system calls.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from . import kernel, landlock, seccomp
from .limits import Limits
from .limits import apply as apply_limits

NOBODY = 65534  # the user and group that own nothing
# users that nobody has, one for each child: they share neither signals nor a count of threads
FIRST_USER = 1 << 30


@dataclass(frozen=True)
class Lock:
    """All that can be made before the fork: made once by the warm parent."""

    limits: Limits
    ruleset: landlock.Ruleset
    program: bytes
    change_user: bool
    own_user: bool

    @classmethod
    def prepare(
        cls, wanted: Limits, readable: list[str], *, change_user: bool, own_user: bool
    ) -> Lock:
        """Raises OSError, which names what the system lacks."""
        if not landlock.abi():
            raise OSError("the kernel has no Landlock, or it is turned off")
        ruleset = landlock.Ruleset(readable, writable=[os.devnull])
        program = seccomp.compile_filter()
        return cls(wanted, ruleset, program, change_user, own_user or change_user)

    def close(self, parent: int, address_space: int, ruleset: int) -> None:
        """Lock this process, whose descriptors are few already. Raises OSError.

        `parent` forked it; `ruleset` is the number that the ruleset's descriptor has here.
        """
        kernel.die_with_parent(parent)
        os.setsid()
        os.umask(0o077)
        apply_limits(self.limits, address_space, own_user=self.own_user)
        if self.change_user:
            become_another_user()
            # a change of user forgets it
            kernel.die_with_parent(parent)
        kernel.drop_capabilities()
        kernel.prctl(kernel.SET_DUMPABLE, 0)
        kernel.no_new_privileges()
        landlock.restrict(ruleset)
        seccomp.install(self.program)


def become_another_user() -> None:
    """A user of this child alone; nobody, where a container has no room for one."""
    own = FIRST_USER + os.getpid()
    os.setgroups([])
    try:
        os.setresgid(own, own, own)
        os.setresuid(own, own, own)
    except OSError:
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
