"""8: the process ends as if all were well, or its parent is made to."""

from .base import Files, Forms, Scene, hostile

forms = Forms(8)


@forms.source(control="exit code")
def exit_at_import(scene: Scene) -> Files:
    """sys.exit(0) while the file is imported."""
    return hostile(at_import="import sys\nsys.exit(0)")


@forms.source()
def exit_in_a_call(scene: Scene) -> Files:
    """sys.exit(0) in the function."""
    return hostile(inside="raise SystemExit(0)")


@forms.source(control="exit code")
def hard_exit_at_import(scene: Scene) -> Files:
    """os._exit(0) while the file is imported."""
    return hostile(at_import="import os\nos._exit(0)")


@forms.source()
def hard_exit_in_a_call(scene: Scene) -> Files:
    """os._exit(0) in the function."""
    return hostile(inside="import os\nos._exit(0)")


@forms.source()
def a_crash(scene: Scene) -> Files:
    """It reads from address 0."""
    return hostile(inside="import ctypes\nctypes.string_at(0)")


@forms.source(control="unsandboxed")
def the_parent_is_killed(scene: Scene) -> Files:
    """The warm parent, its group and everybody else are sent SIGKILL."""
    return hostile(
        at_import="""
        import os, signal

        for target in (os.getppid(),):
            try:
                os.kill(target, signal.SIGKILL)
            except OSError:
                pass
        """
    )


@forms.source()
def everybody_is_killed(scene: Scene) -> Files:
    """All processes that may be signalled, by number and by group; init too."""
    return hostile(
        at_import="""
        import os, signal

        for target in (1, 2, 3, 4, 5, -1, 0, *range(6, 400)):
            for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL):
                if target in (0, os.getpid()):
                    continue
                try:
                    os.kill(target, number)
                except OSError:
                    pass
        """
    )


@forms.source()
def the_parent_is_stopped(scene: Scene) -> Files:
    """The warm parent is stopped, traced, written to, and its priority taken."""
    return hostile(
        at_import="""
        import ctypes, os, resource, signal

        parent = os.getppid()
        libc = ctypes.CDLL(None, use_errno=True)
        for attempt in (
            lambda: os.kill(parent, signal.SIGSTOP),
            lambda: os.kill(parent, signal.SIGUSR1),
            lambda: libc.ptrace(16, parent, 0, 0),
            lambda: open(f"/proc/{parent}/mem", "r+b").write(b"0"),
            lambda: open(f"/proc/{parent}/oom_score_adj", "w").write("1000"),
            lambda: os.setpriority(os.PRIO_PROCESS, parent, 19),
            lambda: resource.prlimit(parent, resource.RLIMIT_CPU, (0, 0)),
            lambda: os.sched_setaffinity(parent, {0}),
            lambda: libc.process_vm_writev(parent, None, 0, None, 0, 0),
        ):
            try:
                attempt()
            except (OSError, AttributeError):
                pass
        """
    )


@forms.source()
def its_first_thread_ends(scene: Scene) -> Files:
    """The first thread is gone, so that the process is a zombie with another thread alive."""
    return hostile(
        at_import="""
        import ctypes, threading, time

        threading.Thread(target=time.sleep, args=(60,)).start()
        """,
        inside="ctypes.CDLL(None).pthread_exit(None)",
    )


@forms.source()
def it_hangs_up_on_one_side(scene: Scene) -> Files:
    """It shuts one direction of its connection, or closes it, and lives on."""
    return hostile(
        at_import="calls = 0",
        inside="""
        import os, socket, time

        global calls
        calls += 1
        served = socket.socket(fileno=os.dup(3))
        if calls % 3 == 2:
            os.close(3)
        else:
            served.shutdown(socket.SHUT_RD if calls % 3 else socket.SHUT_WR)
        """,
    )


@forms.source()
def it_fills_the_connection(scene: Scene) -> Files:
    """It reads nothing, and writes zeros until nothing more goes in: both sides could wait."""
    return hostile(
        at_import="""
        import os

        while True:
            os.write(3, bytes(1 << 16))
        """
    )
