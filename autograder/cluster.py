"""Judges submissions on a Dask cluster: `autograder grade --cluster tcp://...`.

Bytes go there and verdicts come back, so workers need the course and no shared disk; one process
writes, and that is this one. A worker that dies loses nothing: what it held is judged elsewhere.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    InvalidStateError,
)
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from .errors import CourseError
from .grading import AHEAD, Judge, Outcome, Settings, grade, judge_in_worker
from .journal import checks_digest, environment
from .judge.verdict import Verdict

if TYPE_CHECKING:
    from distributed import Client

    from .class_grading import Judge as ClassJudge
    from .submission import Submission

RESOURCE = "judge"  # a worker that has one of it holds one submission, whatever its threads
FEW = 16  # submissions on their way even to a small cluster: others may join
LONGEST_WAIT = 60  # seconds without any worker
LONGEST_CALL = 15  # seconds for the scheduler to answer
START = "python -m distributed.cli.dask_worker ADDRESS --nthreads 1 --resources judge=1"


def on_cluster(address: str, judge: Judge = judge_in_worker) -> Callable[[Settings], ClassJudge]:
    """What `Wishes.judging` takes, for a scheduler at `address`."""

    def judging(settings: Settings) -> ClassJudge:
        return lambda submissions: grade_on_cluster(submissions, address, settings, judge=judge)

    return judging


def grade_on_cluster(
    submissions: Iterable[Submission],
    address: str,
    settings: Settings,
    *,
    judge: Judge = judge_in_worker,
) -> Iterator[Outcome]:
    """Judge submissions on the workers of a scheduler; few are in memory at a time.

    Dask gives a task up when several workers died that held it, as those of a busy cluster may. So
    these are tried again one by one, and only who kills workers alone fails.

    Raises CourseError when there is no such cluster, or when it is lost.
    """
    from distributed import KilledWorker

    lost: list[Submission] = []
    with connected(address) as client, ClusterExecutor(client) as executor:
        ask = partial(judge_alike, judge, identity())
        ahead = max(FEW, AHEAD * len(_workers(client)))
        for outcome in grade(submissions, executor, settings, ahead=ahead, judge=ask):
            if isinstance(outcome.failure, KilledWorker):
                lost.append(outcome.submission)
            else:
                yield _unless_gone(outcome, address)
        for outcome in grade(lost, executor, settings, ahead=1, judge=ask):
            if isinstance(outcome.failure, KilledWorker):
                why = CourseError("each worker that judged it died: look at their memory")
                yield replace(outcome, failure=why)
            else:
                yield _unless_gone(outcome, address)


def _unless_gone(outcome: Outcome, address: str) -> Outcome:
    if outcome.is_broken:
        raise CourseError(
            f"the cluster at {address} is gone, its scheduler or all of its workers; what was "
            "judged is kept: start them again, and `autograder grade` goes on"
        )
    return outcome


def judge_alike(
    judge: Judge, expected: tuple[str, str], files: Mapping[str, bytes], *job: Any
) -> Verdict:
    """Judge in a worker, if it is the same course there.

    Raises CourseError if not: under the driver's name another course's verdicts must not be kept.
    """
    if fault := difference(expected, identity()):
        raise CourseError(fault)
    return judge(files, *job)


def identity() -> tuple[str, str]:
    """The checks and the environment, as far as a verdict depends on them."""
    return checks_digest(), environment()


def difference(here: tuple[str, str], there: tuple[str, str]) -> str:
    """What is wrong with a worker, "" if nothing is."""
    if here[1] != there[1]:
        return f"a worker has {there[1]}, and here is {here[1]}: install the same there"
    if here[0] != there[0]:
        return (
            f"a worker's course differs (checks {there[0][:12]}, here {here[0][:12]}): "
            "bring it to the same commit, and start the worker again"
        )
    return ""


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client of a cluster whose workers can judge. Raises CourseError if they cannot."""
    from distributed import Client

    try:
        client = Client(address, timeout=LONGEST_CALL, set_as_default=False)
    except (OSError, ValueError) as error:  # TimeoutError is an OSError
        raise CourseError(
            f"no scheduler answers at {address}: `dask scheduler` prints its address "
            f"({type(error).__name__})"
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=LONGEST_WAIT)
        except TimeoutError as error:
            raise CourseError(
                f"no worker has come to {address} in {LONGEST_WAIT} s: start some in the course's "
                f"folder with `{START}`"
            ) from error
        for name, worker in _workers(client).items():
            if not worker["resources"].get(RESOURCE):
                raise CourseError(
                    f"worker {name} was started without `--resources {RESOURCE}=1`, which keeps "
                    "its threads from judging several at once"
                )
        for name, there in client.run(identity, on_error="return").items():
            if isinstance(there, BaseException):
                raise CourseError(
                    f"worker {name} cannot import the course ({there!r}): start it in the "
                    "course's folder, or with that on PYTHONPATH"
                )
            if fault := difference(identity(), there):
                raise CourseError(f"worker {name}: {fault}")
        yield client


class ClusterExecutor(Executor):
    """A cluster as an executor whose futures always end, if only with BrokenExecutor.

    Those of Dask's own executor wait for ever when the scheduler is lost while a result is fetched,
    and when all workers are: a nanny does not start a worker again that died while it started.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        # Dask forgets a task whose future nobody holds
        self._waiting: dict[Future[Any], Any] = {}
        self._ended = threading.Event()
        threading.Thread(target=self._watch, daemon=True, name="watch-workers").start()

    def submit(self, function: Callable[..., Any], /, *job: Any, **options: Any) -> Future[Any]:
        if self._ended.is_set():
            raise BrokenExecutor("the cluster is gone")
        ours: Future[Any] = Future()
        theirs = self._client.submit(function, *job, **options, pure=False, resources={RESOURCE: 1})
        self._waiting[ours] = theirs
        theirs.add_done_callback(partial(self._done, ours))
        return ours

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Whoever still waits gets BrokenExecutor."""
        self._ended.set()
        for future in list(self._waiting):
            self._end(future, BrokenExecutor("the cluster is gone"))

    def _done(self, ours: Future[Any], theirs: Any) -> None:
        # in a thread of Dask's
        from distributed.comm import CommClosedError

        try:
            result = self._fetched(theirs)
        except (CancelledError, CommClosedError):
            # nobody here cancels: the scheduler is gone
            self._end(ours, BrokenExecutor("the cluster is gone"))
        except BaseException as error:
            self._end(ours, error)
        else:
            self._waiting.pop(ours, None)
            with suppress(InvalidStateError):
                ours.set_result(result)

    def _fetched(self, theirs: Any) -> Any:
        """The result, or CancelledError if it is waited for no longer.

        Dask waits without end where the cluster is lost meanwhile, and Python does not exit before
        that thread has.
        """
        while True:
            try:
                return theirs.result(timeout=LONGEST_CALL)
            except TimeoutError:
                if theirs.status == "error":  # the function's own
                    raise
                if self._ended.is_set():
                    raise CancelledError from None

    def _end(self, future: Future[Any], error: BaseException) -> None:
        self._waiting.pop(future, None)
        with suppress(InvalidStateError):
            future.set_exception(error)

    def _watch(self) -> None:
        seen = time.monotonic()
        while not self._ended.wait(LONGEST_WAIT / 20):
            try:
                there = bool(_workers(self._client))
            except OSError:
                there = False
            now = time.monotonic()
            seen = now if there else seen
            if now - seen > LONGEST_WAIT:
                self.shutdown()


def _workers(client: Client) -> dict[str, Any]:
    # without a scheduler there is no such entry
    workers: dict[str, Any] = client.scheduler_info(n_workers=-1).get("workers", {})
    return workers
