"""21: a process is left behind, to act when the judge looks elsewhere."""

from .base import Files, Forms, Scene, hostile

forms = Forms(21)


@forms.source(control="unsandboxed")
def a_daemon(scene: Scene) -> Files:
    """Two forks and a session of its own: it outlives its parent and is nobody's child."""
    return hostile(
        at_import=f"""
        import os, time

        try:
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    try:
                        time.sleep(0.5)
                        open({str(scene.folder / "daemon")!r}, "w").write(str(os.getpid()))
                        time.sleep(20)
                    finally:
                        os._exit(0)
                os._exit(0)
            os.wait()
        except OSError:
            pass
        """
    )


@forms.source()
def a_program(scene: Scene) -> Files:
    """A program is started that sleeps."""
    return hostile(
        at_import="""
        import subprocess

        for command in (["sleep", "4321"], ["/bin/sh", "-c", "sleep 4321 &"], ["busybox", "sleep"]):
            try:
                subprocess.Popen(command, start_new_session=True)
            except OSError:
                pass
        """
    )


@forms.source()
def threads_and_timers(scene: Scene) -> Files:
    """Threads, timers and exit handlers wait for the moment when the judge is done."""
    return hostile(
        at_import=f"""
        import atexit, threading

        def act():
            try:
                open("{scene.folder}/late", "w").write("x")
            except OSError:
                pass

        threading.Timer(0.2, act).start()
        threading.Thread(target=lambda: threading.Event().wait(3600)).start()
        atexit.register(act)

        class Last:
            def __del__(self):
                act()

        last = Last()
        """
    )


@forms.source()
def by_the_kernel(scene: Scene) -> Files:
    """Shared memory, message queues and semaphores stay when a process ends; keys and jobs too."""
    return hostile(
        at_import="""
        import ctypes, os

        libc = ctypes.CDLL(None, use_errno=True)
        libc.shmget(4321, 1 << 20, 0o1666)
        libc.semget(4321, 1, 0o1666)
        libc.msgget(4321, 0o1666)
        libc.clone(None, None, 0x00000100, None)
        libc.unshare(0x10000000)
        for name in ("io_uring_setup", "timer_create", "mq_open", "add_key"):
            function = getattr(libc, name, None)
        """
    )
