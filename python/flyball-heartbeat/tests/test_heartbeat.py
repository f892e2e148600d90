"""What the package promises: it reports, and it never breaks training.

    cd python/flyball-heartbeat && python -m unittest
"""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from typing import Any, Callable, Dict, Iterator, Tuple
from unittest import mock

import flyball_heartbeat
from flyball_heartbeat import LOG_PREFIX, Heartbeat

# Only ends a test that hangs.
LONG = 60.0


def until(condition: Callable[[], Any]) -> Any:
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError("waited in vain")


def ask(port: int, method: str, path: str, body: bytes = b"") -> Tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONG)
    with contextlib.closing(connection):
        connection.request(method, path, body=body)
        answer = connection.getresponse()
        return answer.status, answer.read()


def instructions(number: Any, **more: Any) -> bytes:
    return json.dumps({"version": 1, "number": number, **more}).encode()


class Clock:
    """A steady clock and a wall clock that move when a test says so."""

    def __init__(self) -> None:
        self.now, self.wall = 1000.0, 1.7e9

    @contextlib.contextmanager
    def set(self) -> Iterator[Clock]:
        steady = mock.patch.object(flyball_heartbeat.time, "monotonic", lambda: self.now)
        wall = mock.patch.object(flyball_heartbeat.time, "time", lambda: self.wall)
        with steady, wall:
            yield self

    def passes(self, seconds: float) -> None:
        self.now += seconds
        self.wall += seconds


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(self.enterContextManager(tempfile.TemporaryDirectory()))
        for name in list(os.environ):
            if name.startswith("FLYBALL_HEARTBEAT_") or name in ("RANK", "JOB_COMPLETION_INDEX"):
                self.enterContextManager(mock.patch.dict(os.environ))
                del os.environ[name]

    def enterContextManager(self, manager: Any) -> Any:
        value = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        return value

    def heartbeat(self, **settings: Any) -> Heartbeat:
        """Without a port unless the test asks for one."""
        settings.setdefault("port", None)
        with mock.patch.dict(os.environ, {"FLYBALL_HEARTBEAT_PORT": "off"}):
            heartbeat = Heartbeat(**settings)
        self.addCleanup(heartbeat.close)
        return heartbeat

    def answering(self, **settings: Any) -> Tuple[Heartbeat, int]:
        heartbeat = self.heartbeat(port=0, **settings)
        return heartbeat, int(until(lambda: heartbeat.port))


class Counting(Case):
    def test_a_run_reports_what_it_did(self) -> None:
        clock = Clock()
        with clock.set():
            heartbeat = self.heartbeat(total_steps=100, save_every_seconds=600)
            heartbeat.restored(10)
            clock.passes(30)
            heartbeat.step(11, tokens=1100)
            for step in range(12, 16):
                clock.passes(2)
                heartbeat.step(step)
            clock.passes(5)
            heartbeat.saved(15, 5)
            clock.passes(2)
            heartbeat.step(16)
            said = heartbeat.document()
        self.assertEqual((said["step"], said["savedStep"], said["restoredStep"]), (16, 15, 10))
        self.assertEqual((said["stepSeconds"], said["saveSeconds"]), (2.0, 5.0))
        self.assertGreaterEqual(said["restoreSeconds"], 30.0)
        self.assertEqual((said["totalSteps"], said["tokens"], said["saveEverySeconds"]), (100, 1100, 600.0))
        self.assertEqual(said["at"], "2023-11-14T22:14:05.000000Z")
        self.assertEqual(said["startedAt"], "2023-11-14T22:13:20.000000Z")

    def test_what_is_not_known_is_not_said(self) -> None:
        said = self.heartbeat().document()
        self.assertEqual(sorted(said), ["at", "attempt", "startedAt", "step", "version"])

    def test_a_clock_that_is_set_back_leaves_a_start_before_the_report(self) -> None:
        clock = Clock()
        with clock.set():
            heartbeat = self.heartbeat()
            heartbeat.step(1)
            clock.now, clock.wall = clock.now + 10, clock.wall - 86400
            heartbeat.step(2)
            said = heartbeat.document()
        self.assertLess(said["startedAt"], said["at"])
        self.assertEqual(said["stepSeconds"], 10.0)

    def test_with_a_file_starts_and_steps_made_again_are_counted_over_attempts(self) -> None:
        file = self.folder / "heartbeat.json"

        def attempt(*calls: Tuple[str, int]) -> Dict[str, Any]:
            heartbeat = self.heartbeat(file=str(file), total_steps=100, write_every_seconds=0, handle_sigterm=False)
            for name, step in calls:
                getattr(heartbeat, name)(step)
            said = heartbeat.document()
            heartbeat.close()
            return said

        def counted(said: Dict[str, Any]) -> Tuple[int, int]:
            return said["attemptCount"], said["repeatedSteps"]

        self.assertEqual(counted(attempt(("restored", 0), ("step", 1), ("saved", 1), ("step", 7))), (1, 0))
        # One that ends while it restores hides nothing.
        self.assertEqual(counted(attempt()), (2, 0))
        self.assertEqual(json.loads(file.read_text())["step"], 7)
        self.assertEqual(counted(attempt(("restored", 1), ("step", 2), ("step", 9))), (2, 6))
        # One that does not say where it goes on from has made its first step again.
        self.assertEqual(counted(attempt(("step", 6), ("step", 100))), (3, 10))
        # The run has ended; what comes now is another.
        self.assertEqual(counted(attempt(("restored", 0))), (1, 0))

    def test_what_stands_in_the_file_may_be_anything(self) -> None:
        file = self.folder / "heartbeat.json"
        for text in ["", "[]", '{"version":1,"step":-4}', '{"version":1,"step":4,"attemptCount":"x"}']:
            file.write_text(text)
            with self.assertLogs("flyball_heartbeat") if text in ("", "[]") else contextlib.nullcontext():
                heartbeat = self.heartbeat(file=str(file))
            heartbeat.step(5)
            said = heartbeat.document()
            self.assertEqual((said["attemptCount"], said["repeatedSteps"]), (1, 0))
            heartbeat.close()

    def test_a_total_that_was_passed_is_not_said(self) -> None:
        heartbeat = self.heartbeat(total_steps=3)
        heartbeat.step(4)
        self.assertNotIn("totalSteps", heartbeat.document())

    def test_a_save_that_raises_was_no_save_and_raises(self) -> None:
        heartbeat = self.heartbeat()
        with self.assertRaises(OSError), heartbeat.saving(1):
            raise OSError("disk full")
        self.assertNotIn("savedStep", heartbeat.document())

    def test_a_stuck_run_says_nothing_new(self) -> None:
        clock = Clock()
        with clock.set():
            heartbeat = self.heartbeat()
            heartbeat.step(1)
            before = heartbeat.document()
            clock.passes(600)
            self.assertEqual(heartbeat.document(), before)

    def test_only_the_first_process_of_a_run_reports(self) -> None:
        for environment, reports in [
            ({}, True),
            ({"RANK": "0"}, True),
            ({"RANK": "3"}, False),
            ({"JOB_COMPLETION_INDEX": "1"}, False),
            ({"RANK": "0", "JOB_COMPLETION_INDEX": "1"}, True),
            ({"RANK": "?"}, True),
        ]:
            with mock.patch.dict(os.environ, environment):
                self.assertEqual(self.heartbeat().is_reporting, reports, environment)


class Saving(Case):
    def test_the_interval_counts_from_the_end_of_the_last_save(self) -> None:
        clock = Clock()
        with clock.set():
            heartbeat = self.heartbeat(save_every_seconds=60)
            clock.passes(59)
            self.assertFalse(heartbeat.should_save())
            clock.passes(1)
            self.assertTrue(heartbeat.should_save())
            with heartbeat.saving(1):
                clock.passes(20)
            clock.passes(59)
            self.assertFalse(heartbeat.should_save())
            clock.passes(1)
            self.assertTrue(heartbeat.should_save())

    def test_without_an_interval_a_run_saves_when_it_likes(self) -> None:
        clock = Clock()
        with clock.set():
            heartbeat = self.heartbeat()
            clock.passes(1e6)
            self.assertFalse(heartbeat.should_save())

    def test_instructions_set_the_interval_within_limits(self) -> None:
        heartbeat = self.heartbeat(save_every_seconds=600, save_every_limits=(30, 3600))
        for asked, expected in [(900, 900.0), (5, 30.0), (600000, 3600.0), (None, 600.0)]:
            number = heartbeat.document().get("instructionsNumber", 0) + 1
            self.assertEqual(heartbeat._instruct(instructions(number, saveEverySeconds=asked))[0], 204)
            self.assertEqual(heartbeat.save_every_seconds, expected, asked)

    def test_one_save_is_made_for_a_number_that_asks_for_it(self) -> None:
        heartbeat = self.heartbeat()
        heartbeat._instruct(instructions(1, saveNow=True))
        self.assertTrue(heartbeat.should_save())
        heartbeat.saved(1, 0)
        heartbeat._instruct(instructions(1, saveNow=True))
        self.assertFalse(heartbeat.should_save())
        heartbeat._instruct(instructions(2, saveNow=True))
        self.assertTrue(heartbeat.should_save())

    def test_nobody_can_have_a_run_save_all_the_time(self) -> None:
        clock = Clock()
        with clock.set():
            heartbeat = self.heartbeat(save_every_seconds=600)
            saves = 0
            for number in range(3600):
                heartbeat._instruct(instructions(number, saveEverySeconds=1, saveNow=True))
                clock.passes(1)
                heartbeat.step(number)
                if heartbeat.should_save():
                    saves += 1
                    with heartbeat.saving(number):
                        clock.passes(20)
        # Of the first save nothing is known; then 80 s lie between two of 20 s.
        self.assertLessEqual(saves, 1 + 3600 // 80)

    def test_instructions_that_make_no_sense_change_nothing(self) -> None:
        heartbeat = self.heartbeat()
        self.assertEqual(heartbeat._instruct(instructions(5, saveEverySeconds=60))[0], 204)
        for text in [
            b"",
            b"\xff\xfe",
            b"[]",
            b"null",
            b"[" * 100000,
            b'{"version":1,"number":' + b"9" * 5000 + b"}",
            b'{"version":1,"number":6,"saveEverySeconds":NaN}',
            b'{"version":1,"number":6,"saveEverySeconds":1e999}',
            instructions(6, saveEverySeconds=-1),
            instructions(6, saveEverySeconds="600"),
            instructions(6, saveNow="yes"),
            instructions(True),
            instructions(-1),
            instructions(6.5),
            json.dumps({"version": 2, "number": 6}).encode(),
        ]:
            self.assertEqual(heartbeat._instruct(text)[0], 400, text[:40])
        self.assertEqual(heartbeat._instruct(instructions(4))[0], 409)
        self.assertEqual(heartbeat.document()["instructionsNumber"], 5)
        self.assertEqual(heartbeat.save_every_seconds, 60.0)


class Terminating(Case):
    def terminated(self, save_seconds: float, grace: float) -> Tuple[bool, bool]:
        clock = Clock()
        with clock.set():
            heartbeat = self.heartbeat(grace_seconds=grace)
            heartbeat.saved(1, save_seconds)
            heartbeat.step(2)
            self.assertFalse(heartbeat.should_save() or heartbeat.stopping)
            os.kill(os.getpid(), signal.SIGTERM)
            until(lambda: heartbeat.stopping)
            first = heartbeat.should_save()
            heartbeat.saved(2, save_seconds)
            second = heartbeat.should_save()
            heartbeat.close()
        return first, second

    def test_a_save_that_fits_the_grace_is_made_once(self) -> None:
        self.assertEqual(self.terminated(save_seconds=20, grace=30), (True, False))

    def test_a_save_that_does_not_fit_is_not_begun(self) -> None:
        self.assertEqual(self.terminated(save_seconds=30, grace=30), (False, False))

    def test_a_save_of_which_nothing_is_known_is_tried(self) -> None:
        heartbeat = self.heartbeat(rank=1)
        heartbeat.step(1)
        os.kill(os.getpid(), signal.SIGTERM)
        self.assertTrue(until(heartbeat.should_save))

    def test_a_step_after_a_save_during_which_sigterm_came_is_saved_too(self) -> None:
        heartbeat = self.heartbeat()
        heartbeat.step(1)
        with heartbeat.saving(1):
            os.kill(os.getpid(), signal.SIGTERM)
            until(lambda: heartbeat.stopping)
        self.assertFalse(heartbeat.should_save(), "nothing has been done since")
        heartbeat.step(2)
        self.assertTrue(heartbeat.should_save())

    def test_a_handler_of_the_run_is_called_and_comes_back(self) -> None:
        seen = []
        before = signal.signal(signal.SIGTERM, lambda *_: seen.append(1))
        self.addCleanup(signal.signal, signal.SIGTERM, before)
        ours = signal.getsignal(signal.SIGTERM)
        heartbeat = self.heartbeat()
        os.kill(os.getpid(), signal.SIGTERM)
        until(lambda: seen)
        heartbeat.close()
        self.assertIs(signal.getsignal(signal.SIGTERM), ours)

    def test_in_another_thread_there_is_no_handler_and_no_error(self) -> None:
        with self.assertLogs("flyball_heartbeat"):
            thread = threading.Thread(target=lambda: self.heartbeat().step(1))
            thread.start()
            thread.join()


class Files(Case):
    def test_a_file_has_the_last_report_when_the_run_is_closed(self) -> None:
        file = self.folder / "heartbeat.json"
        heartbeat = self.heartbeat(file=str(file))
        heartbeat.step(7)
        heartbeat.close()
        self.assertEqual(json.loads(file.read_text())["step"], 7)
        self.assertEqual([one.name for one in self.folder.iterdir()], ["heartbeat.json"])

    def test_each_step_is_in_the_file_where_that_is_asked_for(self) -> None:
        file = self.folder / "heartbeat.json"
        heartbeat = self.heartbeat(file=str(file), write_every_seconds=0)
        for step in range(1, 20):
            heartbeat.step(step)
            self.assertEqual(json.loads(file.read_text())["step"], step)

    def test_instructions_are_read_from_beside_the_file(self) -> None:
        file = self.folder / "heartbeat.json"
        heartbeat = self.heartbeat(file=str(file))
        until(lambda: not heartbeat._is_first_reading)
        beside = self.folder / "heartbeat.json.instructions"
        beside.write_bytes(instructions(3, saveEverySeconds=90, saveNow=True))
        until(heartbeat.should_save)
        self.assertEqual(heartbeat.save_every_seconds, 90.0)

    def test_a_save_that_an_attempt_before_was_asked_for_is_not_made_again(self) -> None:
        beside = self.folder / "heartbeat.json.instructions"
        beside.write_bytes(instructions(3, saveEverySeconds=90, saveNow=True))
        heartbeat = self.heartbeat(file=str(self.folder / "heartbeat.json"))
        until(lambda: heartbeat.save_every_seconds)
        self.assertFalse(heartbeat.should_save())

    def test_a_disk_that_is_broken_does_not_break_training(self) -> None:
        for file in [self.folder / "no" / "such" / "folder" / "x", self.folder]:
            with self.assertLogs("flyball_heartbeat", "WARNING") as logs:
                heartbeat = self.heartbeat(file=str(file), write_every_seconds=0)
                for step in range(100):
                    heartbeat.step(step)
                heartbeat.close()
            self.assertLessEqual(len(logs.output), 2, "a warning of each kind, not of each step")

    def test_instructions_that_are_no_plain_file_are_not_opened(self) -> None:
        secret = self.folder / "secret"
        secret.write_bytes(instructions(9, saveEverySeconds=90))
        beside = self.folder / "heartbeat.json.instructions"

        def pipe() -> None:
            os.mkfifo(beside)

        for make in (lambda: beside.symlink_to(secret), pipe, lambda: beside.mkdir()):
            make()
            with self.assertLogs("flyball_heartbeat", "WARNING"):
                heartbeat = self.heartbeat(file=str(self.folder / "heartbeat.json"))
                until(lambda: heartbeat._instructions_stamp)
                heartbeat.close()
            self.assertIsNone(heartbeat.save_every_seconds)
            beside.rmdir() if beside.is_dir() and not beside.is_symlink() else beside.unlink()

    def test_a_log_gets_whole_lines_and_not_many(self) -> None:
        out = io.StringIO()
        with mock.patch.object(sys, "stdout", out):
            heartbeat = self.heartbeat(log_every_seconds=3600)
            until(out.getvalue)
            for step in range(1000):
                heartbeat.step(step)
            heartbeat.close()
        lines = out.getvalue().splitlines()
        self.assertEqual(len(lines), 2, "the first and the last")
        self.assertEqual(json.loads(lines[-1].removeprefix(LOG_PREFIX))["step"], 999)


class Http(Case):
    def test_it_answers_and_follows(self) -> None:
        heartbeat, port = self.answering()
        heartbeat.step(3)
        status, body = ask(port, "GET", "/heartbeat")
        self.assertEqual((status, json.loads(body)["step"]), (200, 3))
        self.assertEqual(ask(port, "PUT", "/instructions", instructions(2, saveNow=True)), (204, b""))
        self.assertTrue(heartbeat.should_save())
        self.assertEqual(ask(port, "PUT", "/instructions", instructions(1))[0], 409)
        self.assertEqual(ask(port, "PUT", "/instructions", b"{")[0], 400)
        self.assertEqual(ask(port, "DELETE", "/heartbeat")[0], 405)
        self.assertEqual(ask(port, "GET", "/")[0], 404)

    def test_strangers_get_nothing_and_do_not_stop_it(self) -> None:
        heartbeat, port = self.answering()
        for text in [
            b"",
            b"\x16\x03\x01\x02\x00",
            b"GET\r\n\r\n",
            b"GET /heartbeat HTTP/1.1\r\ncontent-length: x\r\n\r\n",
            b"PUT /instructions HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n",
            b"PUT /instructions HTTP/1.1\r\ncontent-length: -5\r\n\r\n",
            b"GET /" + b"a" * 100_000,
            b"GET /heartbeat HTTP/1.1\r\n" + b"x: y\r\n" * 20_000,
        ]:
            with socket.create_connection(("127.0.0.1", port), timeout=LONG) as stranger:
                with contextlib.suppress(OSError):
                    stranger.sendall(text)
                    stranger.shutdown(socket.SHUT_WR)
                    stranger.recv(100)
        slow = [socket.create_connection(("127.0.0.1", port), timeout=LONG) for _ in range(3)]
        for one in slow:
            one.sendall(b"GET /heart")
        self.assertEqual(ask(port, "GET", "/heartbeat")[0], 200)
        for one in slow:
            one.close()

    def test_a_port_that_is_taken_is_taken_over_once_it_is_free(self) -> None:
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            with self.assertLogs("flyball_heartbeat", "WARNING"), mock.patch.object(Heartbeat, "_wait"):
                heartbeat = self.heartbeat(port=port)
                heartbeat.step(1)
                until(lambda: "listen" in heartbeat._warned)
        until(lambda: heartbeat.port)
        self.assertEqual(ask(port, "GET", "/heartbeat")[0], 200)

    def test_where_no_cluster_is_nobody_else_can_ask(self) -> None:
        with mock.patch.dict(os.environ):
            os.environ.pop("KUBERNETES_SERVICE_HOST", None)
            self.assertEqual(self.heartbeat()._host, "127.0.0.1")
            os.environ["KUBERNETES_SERVICE_HOST"] = "10.0.0.1"
            self.assertEqual(self.heartbeat()._host, "")


class Robust(Case):
    def test_nothing_that_a_run_passes_raises(self) -> None:
        with self.assertLogs("flyball_heartbeat", "WARNING"):
            heartbeat = self.heartbeat(total_steps=10)
            for wrong in ["x", None, float("nan"), object()]:
                heartbeat.step(wrong)  # type: ignore[arg-type]
                heartbeat.saved(1, wrong)  # type: ignore[arg-type]
                heartbeat.restored(wrong)  # type: ignore[arg-type]
            heartbeat.step(1.0)
        self.assertEqual(heartbeat.document()["step"], 1)
        heartbeat.close()
        heartbeat.close()
        heartbeat.step(2)

    def test_settings_that_make_no_sense_are_ignored_with_a_warning(self) -> None:
        wrong = {"SAVE_EVERY_SECONDS": "soon", "GRACE_SECONDS": "-1", "LOG_SECONDS": "nan", "PORT": "off"}
        environment = {"FLYBALL_HEARTBEAT_" + name: value for name, value in wrong.items()}
        with self.assertLogs("flyball_heartbeat", "WARNING") as logs, mock.patch.dict(os.environ, environment):
            heartbeat = Heartbeat()
            self.addCleanup(heartbeat.close)
        self.assertEqual(len(logs.output), 3)
        self.assertIsNone(heartbeat.save_every_seconds)

    @unittest.skipUnless(hasattr(os, "fork"), "this system has no fork")
    def test_a_forked_worker_reports_nothing_and_dies_of_sigterm(self) -> None:
        file = self.folder / "heartbeat.json"
        heartbeat, port = self.answering(file=str(file), write_every_seconds=0)
        heartbeat.step(1)
        ready, tell = os.pipe()
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                heartbeat.step(99)
                os.write(tell, b".")
                time.sleep(LONG)
            os._exit(1)
        os.read(ready, 1)
        os.close(ready)
        os.close(tell)
        os.kill(child, signal.SIGTERM)
        self.assertEqual(os.waitpid(child, 0)[1], signal.SIGTERM)
        self.assertFalse(heartbeat.stopping)
        self.assertEqual(json.loads(file.read_text())["step"], 1)
        heartbeat.step(2)
        self.assertEqual(json.loads(ask(port, "GET", "/heartbeat")[1])["step"], 2)

    def test_a_script_that_ends_without_closing_leaves_its_last_step(self) -> None:
        file = self.folder / "heartbeat.json"
        script = (
            "from flyball_heartbeat import Heartbeat\n"
            f"heartbeat = Heartbeat(file={str(file)!r})\n"
            "for step in range(1, 1000): heartbeat.step(step)\n"
        )
        environment: Dict[str, str] = {**os.environ, "FLYBALL_HEARTBEAT_PORT": "off"}
        folder = str(pathlib.Path(flyball_heartbeat.__file__).parent.parent)
        environment["PYTHONPATH"] = folder
        subprocess.run([sys.executable, "-c", script], check=True, env=environment, timeout=LONG)
        self.assertEqual(json.loads(file.read_text())["step"], 999)


if __name__ == "__main__":
    unittest.main()
