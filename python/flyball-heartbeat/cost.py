"""Processor time of what a training loop calls in a step: `cargo xtask heartbeat cost`.

In rounds, of which the median counts; of the training thread alone, so that a busy machine does not change it much. What
the threads of the package take is in the second number: somebody asks for the heartbeat all the time, and the training
thread waits for the interpreter meanwhile.
"""

from __future__ import annotations

import json
import pathlib
import platform
import statistics
import tempfile
import threading
import time
import urllib.request
from typing import Callable

from flyball_heartbeat import Heartbeat

STEPS, ROUNDS = 2000, 50


def round_us(heartbeat: Heartbeat, clock: Callable[[], float]) -> float:
    began = clock()
    for step in range(STEPS):
        heartbeat.step(step)
        heartbeat.should_save()
    return (clock() - began) / STEPS * 1e6


def median_us(heartbeat: Heartbeat) -> float:
    return statistics.median(round_us(heartbeat, time.thread_time) for _ in range(ROUNDS))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = str(pathlib.Path(folder) / "heartbeat.json")
        with Heartbeat(total_steps=STEPS, save_every_seconds=600, file=file, port=0, host="127.0.0.1") as heartbeat:
            alone = median_us(heartbeat)
            over, requests = threading.Event(), [0]

            def ask() -> None:
                while not over.is_set():
                    if heartbeat.port is not None:
                        with urllib.request.urlopen(f"http://127.0.0.1:{heartbeat.port}/heartbeat") as answer:
                            answer.read()
                            requests[0] += 1

            asking = threading.Thread(target=ask)
            asking.start()
            while requests[0] == 0:
                time.sleep(0.01)
            asked = median_us(heartbeat)
            over.set()
            asking.join()
    said = {"step_us": alone, "asked_us": asked, "requests": requests[0], "python": platform.python_version()}
    print(json.dumps({name: round(value, 2) if isinstance(value, float) else value for name, value in said.items()}))


if __name__ == "__main__":
    main()
