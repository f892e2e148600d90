"""Reports how far a training run is, and says when it should save.

    from flyball_heartbeat import Heartbeat

    with Heartbeat(total_steps=1000, save_every_seconds=600) as heartbeat:
        start = load_checkpoint()              # your own; 0 if there is none
        heartbeat.restored(start)
        for step in range(start + 1, 1001):
            train_one_step()                   # your own
            heartbeat.step(step)
            if heartbeat.should_save():
                with heartbeat.saving(step):
                    save_checkpoint(step)      # your own
            if heartbeat.stopping:
                raise SystemExit(143)

It reports over HTTP, in a file, and in the log (docs/reference/heartbeat.md), from two daemon threads. No method
raises: what goes wrong is a warning of the logger `flyball_heartbeat`, and training goes on. Nothing that the calls
of a step do waits for a disk, the network or a lock.

This file needs nothing but Python and can be copied alone. `callbacks` beside it has those for Lightning and
Transformers.
"""

from __future__ import annotations

import atexit
import contextlib
import datetime
import json
import logging
import math
import os
import secrets
import signal
import socket
import stat
import sys
import threading
import time
import weakref
from types import FrameType, TracebackType
from typing import Any, Callable, Dict, Iterator, Optional, SupportsFloat, SupportsInt, Tuple, Type, TypeVar

__all__ = ["Heartbeat", "LOG_PREFIX", "PORT", "VERSION"]

VERSION = 1
PORT = 9471
LOG_PREFIX = "flyball-heartbeat "

_log = logging.getLogger("flyball_heartbeat")

# Bytes of instructions, and of the head of a request.
_MAX_BYTES = 16 << 10
# What every reader of JSON holds exactly.
_MAX_COUNT = (1 << 53) - 1
# Seconds until a connection is given up: one at a time is served, and who is slow must not keep out the next for long.
_CONNECTION_SECONDS = 1.0
# After each connection: a flood of requests takes a small share of the interpreter from training, not half of it.
_PAUSE_SECONDS = 0.01
# How many times as long as a save took nobody may ask for the next: instructions cost at most a fifth of the time.
_SAVES_APART = 4.0
# Steps that the step time is the mean of, about.
_SMOOTHED_STEPS = 20

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _quiet(function: _Function) -> _Function:
    """Training goes on, whatever goes wrong here."""

    def guarded(self: Heartbeat, *args: Any, **named: Any) -> Any:
        try:
            return function(self, *args, **named)
        except Exception as error:
            self._warn(function.__name__, error)
            return None

    guarded.__doc__, guarded.__name__ = function.__doc__, function.__name__
    return guarded  # type: ignore[return-value]


class Heartbeat:
    """How far this run is. One per process; only the process of rank 0 reports."""

    def __init__(
        self,
        *,
        total_steps: Optional[int] = None,
        save_every_seconds: Optional[float] = None,
        save_every_limits: Tuple[float, float] = (10.0, 14400.0),
        file: Optional[str] = None,
        port: Optional[int] = None,
        host: Optional[str] = None,
        log_every_seconds: Optional[float] = None,
        write_every_seconds: float = 1.0,
        grace_seconds: Optional[float] = None,
        rank: Optional[int] = None,
        handle_sigterm: bool = True,
    ) -> None:
        """What is not given comes from the environment: FLYBALL_HEARTBEAT_SAVE_EVERY_SECONDS, _FILE, _PORT (`off`
        for none, 0 for any), _HOST, _LOG_SECONDS (never, if absent) and _GRACE_SECONDS (30).

        `save_every_limits` bounds what instructions may ask for. `write_every_seconds=0` writes the file in `step()`
        itself, for tests that count steps: training then waits for the disk.
        """
        setting = _setting
        self.rank = _rank() if rank is None else rank
        self.attempt = secrets.token_hex(8)
        self._pid = os.getpid()
        self._process_seconds = _process_age()
        self._began = time.monotonic()
        self._total = total_steps
        self._own_every = setting(save_every_seconds, "SAVE_EVERY_SECONDS", None)
        self._limits = save_every_limits
        self._grace = setting(grace_seconds, "GRACE_SECONDS", 30.0) or 0.0
        self._log_every = setting(log_every_seconds, "LOG_SECONDS", None)
        self._file = file or os.environ.get("FLYBALL_HEARTBEAT_FILE") or None
        self._port = _port(port)
        # Other machines ask in a cluster, and nobody should on a desk or a login node.
        anywhere = "" if "KUBERNETES_SERVICE_HOST" in os.environ else "127.0.0.1"
        self._host = host if host is not None else os.environ.get("FLYBALL_HEARTBEAT_HOST", anywhere)
        self._write_every = write_every_seconds

        self._step = 0
        self._tokens: Optional[int] = None
        self._saved: Optional[int] = None
        self._restored: Optional[int] = None
        self._step_seconds: Optional[float] = None
        self._save_seconds: Optional[float] = None
        self._restore_seconds: Optional[float] = None
        self._steps_seen = 0
        self._stepped_at: Optional[float] = None
        self._saving_since_step = 0.0
        self._saved_at = self._began
        self._at, self._at_wall = self._began, time.time()
        self._asked_every: Optional[float] = None
        self._save_asked = False
        self._number: Optional[int] = None
        self._terminated_at: Optional[float] = None
        self._has_unsaved = False

        # Of the attempts before this one, as their file says: starts, steps made again, last step.
        self._starts, self._repeated, self._before = 0, 0, 0
        # Whether this attempt knows where it goes on from. Until then the file is that of the one before.
        self._is_settled = False

        self._warned: Dict[str, float] = {}
        self._reports = 0
        self._written = -1
        self._logged_at: Optional[float] = None
        self._instructions_stamp: Optional[Tuple[int, int, int]] = None
        self._is_first_reading = True
        self._instructing = threading.Lock()
        self._writing = threading.Lock()
        self._wake = threading.Event()
        self._closed = False
        self._server: Optional[socket.socket] = None
        self._threads: list[threading.Thread] = []
        self._previous: Any = None
        self._handles_sigterm = False
        self.is_reporting = self.rank == 0
        if self.is_reporting:
            self._read_before()
        if handle_sigterm:
            self._handle_sigterm()
        self._start()

    # What a training loop calls.

    @_quiet
    def step(self, n: SupportsInt, tokens: Optional[SupportsInt] = None) -> None:
        """Step `n` has ended; `tokens` are those trained on so far."""
        now = time.monotonic()
        n = int(n)
        since, done = self._stepped_at, n - self._step
        if since is None:
            if self._restored and self._restore_seconds is None:
                self._restore_seconds = now - self._began + self._process_seconds
        elif done > 0:
            seconds = max(now - since - self._saving_since_step, 0.0) / done
            self._steps_seen = min(self._steps_seen + 1, _SMOOTHED_STEPS)
            mean = self._step_seconds or 0.0
            self._step_seconds = mean + (seconds - mean) / self._steps_seen
        self._stepped_at, self._saving_since_step = now, 0.0
        self._settle(n - 1)
        self._step, self._has_unsaved = n, True
        if tokens is not None:
            self._tokens = int(tokens)
        self._report(now)

    @_quiet
    def saved(self, n: SupportsInt, seconds: Optional[SupportsFloat] = None) -> None:
        """The checkpoint of step `n` is complete; `seconds` are those for which training stood still."""
        now = time.monotonic()
        self._saved = int(n)
        if seconds is not None and math.isfinite(float(seconds)):
            self._save_seconds = max(float(seconds), 0.0)
            self._saving_since_step += self._save_seconds
        self._saved_at, self._save_asked = now, False
        self._has_unsaved = False
        self._report(now)
        self._wake.set()

    @contextlib.contextmanager
    def saving(self, n: SupportsInt) -> Iterator[None]:
        """Times a save; what raises was no save."""
        began = time.monotonic()
        yield
        self.saved(n, time.monotonic() - began)

    @_quiet
    def restored(self, n: SupportsInt) -> None:
        """Training goes on from the checkpoint of step `n`; 0 if from nothing."""
        now = time.monotonic()
        n = int(n)
        self._settle(n)
        self._restored, self._step, self._stepped_at = n, n, None
        self._saved, self._has_unsaved = n if n > 0 else None, False
        self._saved_at = now
        self._report(now)
        self._wake.set()

    def should_save(self) -> bool:
        """Whether to save after this step.

        Where all processes save together, they must do so at the same step: take the largest answer of all of them.
        """
        if self._terminated_at is not None:
            # A save during which it came does not have the step after it.
            return self._has_unsaved and self._save_fits()
        if not self.is_reporting:
            return False
        since = time.monotonic() - self._saved_at
        if self._save_asked and since >= self._least_apart():
            return True
        every = self.save_every_seconds
        return every is not None and since >= every

    @property
    def last_step(self) -> int:
        """The last step that was reported."""
        return self._step

    @property
    def stopping(self) -> bool:
        """Whether SIGTERM came: after a save for which `should_save` asks, the process should end."""
        return self._terminated_at is not None

    @property
    def save_every_seconds(self) -> Optional[float]:
        """The interval in force: of the instructions within the limits, else the run's own."""
        asked = self._asked_every
        if asked is None:
            return self._own_every
        least, most = self._limits
        return min(max(asked, least, self._least_apart()), most)

    @property
    def port(self) -> Optional[int]:
        """Where it answers, once it does."""
        server = self._server
        return None if server is None else int(server.getsockname()[1])

    def document(self) -> Dict[str, Any]:
        """The heartbeat, as docs/reference/heartbeat.md has it."""
        # In this order, because the training thread goes on meanwhile: a step is never before its save.
        saved, restored = self._saved, self._restored
        step = max(self._step, saved or 0, restored or 0)
        total = self._total if self._total is not None and self._total >= step else None
        wall = self._at_wall
        fields: Dict[str, Any] = {
            "version": VERSION,
            "step": step,
            "totalSteps": total,
            "savedStep": saved,
            "restoredStep": restored,
            "stepSeconds": _rounded(self._step_seconds),
            "saveSeconds": _rounded(self._save_seconds),
            "restoreSeconds": _rounded(self._restore_seconds),
            "tokens": self._tokens,
            # From the steady clock: a wall clock that was set would have it after `at`.
            "startedAt": _rfc3339(wall - max(self._at - self._began, 0.0)),
            "at": _rfc3339(wall),
            "attempt": self.attempt,
            "saveEverySeconds": _rounded(self.save_every_seconds),
            "instructionsNumber": self._number,
            "attemptCount": self._starts + 1 if self._counts else None,
            "repeatedSteps": self._repeated if self._counts else None,
        }
        return {name: value for name, value in fields.items() if value is not None}

    def close(self) -> None:
        """Writes what is left, within two seconds, and stops reporting."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        self._wake.set()
        for thread in self._threads:
            thread.join(2.0)
        self._let_sigterm_go()

    def __enter__(self) -> Heartbeat:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    # What the attempts before this one did.

    @property
    def _counts(self) -> bool:
        """Only a file outlives an attempt."""
        return self._file is not None

    @_quiet
    def _read_before(self) -> None:
        """Goes on from the counts of the attempt before, which nobody outside may have seen to its last step."""
        if self._file is None:
            return
        try:
            form = json.loads(_read(self._file))
        except FileNotFoundError:
            return
        if form["version"] != VERSION or form["step"] == form.get("totalSteps"):
            # A run that has ended: this is another one in its folder.
            return
        numbers = form.get("attemptCount", 1), form.get("repeatedSteps", 0), form["step"]
        if all(type(number) is int and 0 <= number <= _MAX_COUNT for number in numbers):
            self._starts, self._repeated, self._before = numbers

    def _settle(self, n: int) -> None:
        """Training goes on from step `n`: what the attempt before did after it is made again."""
        if not self._is_settled:
            self._repeated += max(self._before - n, 0)
            self._is_settled = True

    # SIGTERM: a reclaim notice, or a preemption.

    @_quiet
    def _handle_sigterm(self) -> None:
        # Anywhere else than in the main thread this raises, and there is no handler.
        self._previous = signal.signal(signal.SIGTERM, self._on_sigterm)
        self._handles_sigterm = True
        _living.add(self)

    def _on_sigterm(self, number: int, frame: Optional[FrameType]) -> None:
        if os.getpid() != self._pid:
            # A child that got it before it could let go: it dies of it as it would have without us.
            self._forked()
            os.kill(os.getpid(), number)
            return
        if self._terminated_at is None:
            self._terminated_at = time.monotonic()
        if callable(self._previous):
            self._previous(number, frame)

    @_quiet
    def _let_sigterm_go(self) -> None:
        # Whoever has set a handler since then keeps it.
        if self._handles_sigterm and signal.getsignal(signal.SIGTERM) == self._on_sigterm:
            signal.signal(signal.SIGTERM, self._previous if self._previous is not None else signal.SIG_DFL)
        self._handles_sigterm = False

    def _save_fits(self) -> bool:
        if self._save_seconds is None or self._terminated_at is None:
            # Nothing is known, and a save that is cut short leaves the last one as it was.
            return True
        left = self._grace - (time.monotonic() - self._terminated_at)
        return self._save_seconds * 1.2 + 1.0 <= left

    def _least_apart(self) -> float:
        return _SAVES_APART * (self._save_seconds or 0.0)

    # Reporting.

    def _start(self) -> None:
        if not self.is_reporting:
            return
        _living.add(self)
        self._thread(self._report_until_closed)
        if self._port is not None:
            self._thread(self._serve_until_closed)
        atexit.register(self.close)

    @_quiet
    def _thread(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name="flyball-heartbeat", daemon=True)
        thread.start()
        self._threads.append(thread)

    def _report(self, now: float) -> None:
        self._at, self._at_wall = now, time.time()
        self._reports += 1
        if self._write_every <= 0.0 and self.is_reporting:
            self._write_file()

    def _report_until_closed(self) -> None:
        while not self._closed:
            self._read_instructions()
            self._write_file()
            self._write_log()
            # A loop that saves all the time must not make this one spin.
            time.sleep(0.05)
            self._wake.wait(max(self._write_every, 0.05) if self._write_every > 0.0 else 1.0)
            self._wake.clear()
        self._write_file()
        self._write_log()

    @_quiet
    def _write_file(self) -> None:
        if self._file is None or self._written == self._reports:
            return
        if self._starts and not self._is_settled:
            # An attempt that ends before it knows where it goes on from must not hide what the one before did.
            return
        with self._writing:
            reports = self._reports
            _replace(self._file, json.dumps(self.document()), self.attempt)
            self._written = reports

    @_quiet
    def _write_log(self) -> None:
        if self._log_every is None:
            return
        now = time.monotonic()
        if self._logged_at is None or now - self._logged_at >= self._log_every or self._closed:
            self._logged_at = now
            # One call for a whole line, so that those of others do not come in between.
            sys.stdout.write(LOG_PREFIX + json.dumps(self.document()) + "\n")
            sys.stdout.flush()

    # Instructions.

    @_quiet
    def _read_instructions(self) -> None:
        if self._file is None:
            return
        path = self._file + ".instructions"
        try:
            seen = os.lstat(path)
        except FileNotFoundError:
            self._is_first_reading = False
            return
        stamp = (seen.st_mtime_ns, seen.st_size, seen.st_ino)
        if stamp == self._instructions_stamp:
            return
        self._instructions_stamp = stamp
        # What stood there before this process did was for the one before it: there is nothing to save yet.
        may_save, self._is_first_reading = not self._is_first_reading, False
        status, why = self._instruct(_read(path), may_save)
        if status == 400:
            raise ValueError(why)

    def _instruct(self, text: bytes, may_save: bool = True) -> Tuple[int, str]:
        """Follows instructions; the status and the words of the answer to whoever sent them."""
        try:
            form = json.loads(text)
            number, every, now = form["number"], form.get("saveEverySeconds"), form.get("saveNow", False)
            version = form["version"]
        except Exception as error:
            return 400, f"not instructions: {type(error).__name__}"
        if version != VERSION:
            return 400, f"only version {VERSION} is known"
        if type(number) is not int or not 0 <= number <= _MAX_COUNT:
            return 400, "`number` must be a whole number"
        if type(now) is not bool:
            return 400, "`saveNow` must be true or false"
        is_number = type(every) in (int, float) and 1 <= every <= 604800
        if every is not None and not is_number:
            return 400, "`saveEverySeconds` must be between 1 and 604800"
        with self._instructing:
            last = self._number
            if last is not None and number < last:
                return 409, f"number {number} is smaller than {last}, which came before"
            self._asked_every = None if every is None else float(every)
            if number != last:
                self._save_asked = now and may_save
            self._number = number
            self._reports += 1
        return 204, ""

    # HTTP: one connection at a time, each within a second.

    def _serve_until_closed(self) -> None:
        while not self._closed:
            try:
                self._server = self._listen()
                self._accept_until_closed(self._server)
            except Exception as error:
                # Taken by a process that is about to end, perhaps.
                self._warn("listen", error)
                self._wait(5.0)
            finally:
                server, self._server = self._server, None
                if server is not None:
                    server.close()

    def _listen(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._host or self._host == "" else socket.AF_INET
        try:
            server = socket.socket(family, socket.SOCK_STREAM)
        except OSError:
            # A machine without IPv6.
            family = socket.AF_INET
            server = socket.socket(family, socket.SOCK_STREAM)
        try:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            server.bind((self._host, self._port))
            server.listen(16)
            server.settimeout(0.5)
        except BaseException:
            server.close()
            raise
        return server

    def _accept_until_closed(self, server: socket.socket) -> None:
        while not self._closed:
            try:
                connection, _ = server.accept()
            except socket.timeout:
                continue
            with connection:
                self._answer(connection)
            time.sleep(_PAUSE_SECONDS)

    @_quiet
    def _answer(self, connection: socket.socket) -> None:
        try:
            method, path, body = _request(connection)
        except (ValueError, OSError):
            # Slow, large or not HTTP: no answer is owed, and it is nothing that the run should warn of.
            return
        if (method, path) == ("GET", "/heartbeat"):
            status, words, kind = 200, json.dumps(self.document()), "application/json"
        elif (method, path) == ("PUT", "/instructions"):
            status, words = self._instruct(body)
            kind = "text/plain"
        elif path in ("/heartbeat", "/instructions"):
            status, words, kind = 405, "GET /heartbeat or PUT /instructions", "text/plain"
        else:
            status, words, kind = 404, "GET /heartbeat or PUT /instructions", "text/plain"
        with contextlib.suppress(OSError):
            connection.sendall(_response(status, words, kind))

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._closed and time.monotonic() < until:
            time.sleep(0.1)

    # What goes wrong, and forks.

    def _warn(self, where: str, error: BaseException) -> None:
        with contextlib.suppress(Exception):
            now = time.monotonic()
            last = self._warned.get(where)
            if last is None or now - last >= 600.0:
                self._warned[where] = now
                _log.warning("%s failed and training goes on: %s: %s", where.strip("_"), type(error).__name__, error)

    def _forked(self) -> None:
        """In the child of a fork, such as a worker that loads data: it has no threads and reports nothing."""
        self.is_reporting = False
        self._closed = True
        server, self._server = self._server, None
        if server is not None:
            server.close()
        self._let_sigterm_go()


_living: weakref.WeakSet[Heartbeat] = weakref.WeakSet()


def _after_fork() -> None:
    for heartbeat in list(_living):
        with contextlib.suppress(Exception):
            heartbeat._forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _rank() -> int:
    """Of this process in the run. What is no number is taken for the first: a report too much harms nobody."""
    for name in ("RANK", "JOB_COMPLETION_INDEX"):
        text = os.environ.get(name)
        if text is not None:
            return int(text) if text.isascii() and text.isdigit() else 0
    return 0


def _setting(given: Optional[float], name: str, default: Optional[float]) -> Optional[float]:
    if given is not None:
        return float(given)
    text = os.environ.get("FLYBALL_HEARTBEAT_" + name, "")
    try:
        value = float(text)
        if value >= 0.0 and math.isfinite(value):
            return value
    except ValueError:
        pass
    if text:
        _log.warning("FLYBALL_HEARTBEAT_%s is no number of seconds and is ignored", name)
    return default


def _port(given: Optional[int]) -> Optional[int]:
    if given is not None:
        return given
    text = os.environ.get("FLYBALL_HEARTBEAT_PORT", str(PORT))
    if text == "off":
        return None
    if text.isascii() and text.isdigit() and int(text) < 65536:
        return int(text)
    _log.warning("FLYBALL_HEARTBEAT_PORT is no port and %s is taken", PORT)
    return PORT


def _process_age() -> float:
    """Seconds since this process started, where Linux says so: imports take longer than most restores."""
    try:
        with open("/proc/self/stat", encoding="utf-8") as file:
            # The name of the program is in brackets and may have anything in it.
            started = int(file.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
        return max(time.clock_gettime(time.CLOCK_BOOTTIME) - started, 0.0)
    except Exception:
        return 0.0


def _rounded(seconds: Optional[float]) -> Optional[float]:
    return None if seconds is None else round(seconds, 6)


def _rfc3339(wall: float) -> str:
    at = datetime.datetime.fromtimestamp(wall, datetime.timezone.utc)
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _replace(path: str, text: str, attempt: str) -> None:
    """Whoever reads sees the old text or the new one."""
    beside = f"{path}.{attempt}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    try:
        with open(os.open(beside, flags, 0o644), "w", encoding="utf-8") as file:
            file.write(text + "\n")
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(beside)
        raise


def _read(path: str) -> bytes:
    """A regular file, and no more of it than instructions have: others may write there."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError(f"{path} is not a file")
        text = file.read(_MAX_BYTES + 1)
    if len(text) > _MAX_BYTES:
        raise ValueError(f"{path} has more than {_MAX_BYTES} bytes")
    return text


def _request(connection: socket.socket) -> Tuple[str, str, bytes]:
    """Method, path and body."""
    until = time.monotonic() + _CONNECTION_SECONDS
    text = b""

    def more() -> bytes:
        connection.settimeout(max(until - time.monotonic(), 0.001))
        chunk = connection.recv(4096)
        if not chunk or len(text) + len(chunk) > 2 * _MAX_BYTES or time.monotonic() > until:
            raise ValueError("cut short, large or slow")
        return chunk

    while b"\r\n\r\n" not in text:
        text += more()
    head, _, body = text.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = int(fields.get("content-length", "0"))
    if not 0 <= length <= _MAX_BYTES:
        raise ValueError("large")
    while len(body) < length:
        chunk = more()
        text += chunk
        body += chunk
    return method, path.partition("?")[0], body[:length]


_REASONS = {200: "OK", 204: "No Content", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 409: "Conflict"}


def _response(status: int, words: str, kind: str) -> bytes:
    body = (words + "\n").encode() if words else b""
    fields = f"content-type: {kind}\r\ncontent-length: {len(body)}\r\n" if body else ""
    return f"HTTP/1.1 {status} {_REASONS[status]}\r\n{fields}connection: close\r\n\r\n".encode() + body
