"""Many runs, on the cores of this machine or on a cluster, one way for all of them; what is done is never done again.

joblib is the only interface: its own processes by default, dask for a cluster. Each job carries its seed, and BLAS has
one thread in every worker, so neither the engine nor the number of workers changes a result.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import inca
from inca._base.threads import available_cores, one_blas_thread
from inca._base.types import Progress
from inca._base.validation import InputError, refuse, whole
from inca.reproduction import runs
from inca.reproduction.figure_reproduction import Job

KINDS = ("processes", "serial", "dask")
TIMEOUT = "10s"
"""How long a scheduler may take to answer."""
_HOME = Path(inca.__file__).parent


class WorkerLost(InputError):
    """A worker died, perhaps for want of memory."""

    status = 1


def perform(place: int, run: str, settings: dict[str, Any], source: str) -> tuple[int, str]:
    """Do one job, anywhere, and return its place and its result as JSON; refuse if the code there is another."""
    if source_digest() != source:
        raise InputError(f"a worker's source code of inca is {source_digest()[:16]}, but {source[:16]} was expected")
    with one_blas_thread():
        return place, json.dumps(getattr(runs, run)(**settings))


class Engine:
    """Where jobs are done: `processes` on this machine, `serial` in this process, or a `dask` cluster.

    `workers` defaults to the available cores. `address` is that of a running dask scheduler; without one, a local
    cluster is started, which listens on 127.0.0.1 only.

    >>> with Engine("serial") as engine:
    ...     settings = {"parties": 4, "colluding": 0, "first": 0, "runs": 100, "seed": 1}
    ...     list(engine.results([Job("first_rounds", settings)]))
    [(0, [0, 99, 1, 0, 0])]
    """

    def __init__(self, kind: str = "processes", workers: int | None = None, address: str | None = None) -> None:
        """Choose an engine; it starts when it is entered."""
        if kind not in KINDS:
            raise refuse("engine", kind, "one of " + ", ".join(KINDS))
        if address is not None and kind != "dask":
            raise refuse("address", address, "none, or engine dask")
        self.kind, self.address = kind, address
        self.workers = available_cores() if workers is None else whole("workers", workers, least=1)
        for module, extra in (("joblib", "reproduce"), *((("distributed", "cluster"),) if kind == "dask" else ())):
            if find_spec(module) is None:
                raise InputError(f"engine {kind} needs {module}: pip install 'inca[{extra}]'")
        self._open = ExitStack()

    def __enter__(self) -> Self:
        """Start."""
        if self.kind == "dask":
            self._open.enter_context(_client(self.address, self.workers))
        return self

    def __exit__(self, *error: object) -> None:
        """Stop what was started."""
        self._open.close()

    def results(self, jobs: Sequence[Job]) -> Generator[tuple[int, Any], None, None]:
        """Yield (place, result) of each job as soon as it is done."""
        from joblib import Parallel, delayed, parallel_config

        source = source_digest()
        work = [delayed(perform)(place, job.run, dict(job.settings), source) for place, job in enumerate(jobs)]
        backend = {"processes": "loky", "serial": "sequential", "dask": "dask"}[self.kind]
        with parallel_config(backend=backend):
            workers = None if self.kind == "dask" else self.workers  # dask knows its own
            finished = Parallel(n_jobs=workers, return_as="generator_unordered")(work)
            try:
                for place, text in finished:
                    yield place, json.loads(text)
            except Exception as error:
                if isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker":  # dask's
                    raise WorkerLost("a worker died; the same command goes on where it stopped") from None
                raise
            finally:  # should the caller stop, no worker goes on, and it needs no advice that work was lost
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)
                    finished.close()


@contextmanager
def _client(address: str | None, workers: int) -> Iterator[None]:
    """Connect to a scheduler, or start one on this machine."""
    from distributed import Client, LocalCluster

    with ExitStack() as stack:
        try:
            if address is None:
                cluster = LocalCluster(
                    n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, silence_logs=50
                )
                stack.enter_context(cluster)
                stack.enter_context(Client(cluster))
            else:
                stack.enter_context(Client(address, timeout=TIMEOUT))
        except (OSError, ValueError) as error:
            raise InputError(f"address is {address!r}, but no dask scheduler answers there: {error}") from None
        yield


class Notebook:
    """Finished jobs in a file, one per line, so that interrupted work goes on where it stopped.

    A job is recognised by its function, its arguments and the source code it depends on, so a result is never that of
    another version. A line that was cut short is done again. `spent` is how many seconds were worked in all calls for
    the same `purpose`.
    """

    def __init__(self, path: Path, purpose: str = "") -> None:
        """Read what is there."""
        self.path, self.purpose, self._known, self.spent = path, purpose, dict[str, Any](), 0.0
        try:
            lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path} cannot be read as a notebook of finished work: {error}") from None
        for line in lines:
            try:
                entry = json.loads(line)
                if entry.get("source") == source_digest()[:16]:
                    if "key" in entry:
                        self._known[entry["key"]] = entry["result"]
                    elif entry["purpose"] == purpose:
                        self.spent += float(entry["spent"])
            except (ValueError, KeyError, TypeError, AttributeError):
                continue

    def find(self, job: Job) -> tuple[bool, Any]:
        """Return whether a job is done, and its result."""
        key = _key(job)
        return key in self._known, self._known.get(key)

    def add(self, job: Job, result: Any) -> None:
        """Keep a result."""
        key = _key(job)
        self._known[key] = result
        self._append({"key": key, "run": job.run, "settings": dict(job.settings), "result": result})

    def spend(self, seconds: float) -> None:
        """Keep how long was worked."""
        self.spent += seconds
        self._append({"purpose": self.purpose, "spent": seconds})

    def _append(self, entry: dict[str, Any]) -> None:
        entry = {"source": source_digest()[:16], **entry}
        try:
            with self.path.open("a", encoding="utf-8") as file:
                # A line of its own, also after one that was cut short.
                file.write("\n" * (file.tell() > 0) + json.dumps(entry))
        except OSError as error:
            raise InputError(f"{self.path} cannot be written: {error.strerror or error}") from None


def do(jobs: Sequence[Job], engine: Engine, notebook: Notebook, progress: Progress) -> list[Any]:
    """Return the results of jobs in order, doing only those that are not in the notebook."""
    found = [notebook.find(job) for job in jobs]
    results = [result for _, result in found]
    open_places = [place for place, (known, _) in enumerate(found) if not known]
    done = len(jobs) - len(open_places)
    progress(done, len(jobs))
    if not open_places:
        return results
    with closing(engine.results([jobs[place] for place in open_places])) as finished:
        for number, result in finished:
            place = open_places[number]
            notebook.add(jobs[place], result)
            results[place] = result
            done += 1
            progress(done, len(jobs))
    return results


def _key(job: Job) -> str:
    text = json.dumps([job.run, dict(job.settings)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def counted_sources() -> list[str]:
    """Return the source files on which results depend: the library and what workers do; no pictures, pages or nodes."""
    names = sorted(path.relative_to(_HOME).as_posix() for path in _HOME.rglob("*.py"))
    working = ("reproduction/runs.py", "reproduction/rounds_to_connect.py")
    shown = ("__main__.py", "cli/", "dashboard/", "reproduction/", "learn/", "network/", "_base/plotting.py")
    return [name for name in names if not name.startswith(shown) or name in working]


@cache
def source_digest() -> str:
    """Return a digest of these files."""
    digest = hashlib.sha256()
    for name in counted_sources():
        digest.update(name.encode() + b"\0" + (_HOME / name).read_bytes() + b"\0")
    return digest.hexdigest()
