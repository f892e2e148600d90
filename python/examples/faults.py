"""Kills a training run again and again and counts what it cost: `ddp.py` beside this, in two processes.

    PYTHONPATH=python/flyball-heartbeat python python/examples/faults.py --folder RUN

The same run is made twice: undisturbed, and with everything killed (SIGKILL) and told to end (SIGTERM) at steps that a
seed chooses. The last line of the output is JSON with what was counted; the exit code is 1 if a promise was broken. What
is killed are processes of one machine: no node, no disk, no network. They are forked from this one, which has loaded
torch, or, with `--torchrun`, started by torchrun, which takes three imports of torch for each attempt.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time
import traceback
from typing import Any, Dict, List, NamedTuple, Optional

EXAMPLE = pathlib.Path(__file__).with_name("ddp.py")
# Only ends a run that hangs.
LONG = 600.0
# Kubernetes gives so long; torchrun waits as long.
GRACE_SECONDS = 30


class Line(NamedTuple):
    attempt: str
    step: int
    loss: str


class Fault(NamedTuple):
    """One fault: what the ledger, the disk and the heartbeat have of the attempt that it ended."""

    kind: str
    last_step: int
    newest_checkpoint: int
    heartbeat: Dict[str, Any]


def main() -> int:
    settings = arguments()
    began = time.monotonic()
    calm = settings.folder / "calm"
    weights = Run(calm, settings).to_the_end()
    say(f"undisturbed: {settings.steps} steps")
    kinds = ["kill"] * settings.kills + ["term"] * settings.terms
    chance = random.Random(settings.seed)
    chance.shuffle(kinds)
    stormy = settings.folder / "stormy"
    faults = [suffer(kind, place, stormy, settings, chance) for place, kind in enumerate(kinds)]
    again = Run(stormy, settings).to_the_end()
    last = heartbeat(stormy)
    counted = count(read_ledger(calm), read_ledger(stormy), faults, last, settings)
    counted["equal_weights"] = weights == again
    counted["seconds"] = round(time.monotonic() - began)
    counted["broken"] = broken(counted, settings)
    print(json.dumps(counted))
    return 1 if counted["broken"] else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="empty, or not there yet")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--save-every", type=int, default=8, help="steps between two checkpoints")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--terms", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--torchrun", action="store_true", help="start each attempt by torchrun: slower")
    return parser.parse_args()


class Run:
    """Two processes of one attempt, and who started them."""

    def __init__(self, folder: pathlib.Path, settings: argparse.Namespace) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.out = folder / "out.txt"
        self.out.write_text("", encoding="utf-8")
        run = ["--folder", str(folder), "--steps", str(settings.steps), "--save-every", str(settings.save_every)]
        # The heartbeat of each step is in the file before the next begins, so that counts can be held against each other.
        run += ["--write-every-seconds", "0"]
        environment = {
            "OMP_NUM_THREADS": "1",
            "FLYBALL_HEARTBEAT_FILE": str(folder / "heartbeat.json"),
            "FLYBALL_HEARTBEAT_PORT": "0",
            "FLYBALL_HEARTBEAT_GRACE_SECONDS": str(GRACE_SECONDS),
        }
        if settings.torchrun:
            torchrun = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(EXAMPLE)]
            command = [sys.executable, "-m", *torchrun, *run]
            with open(self.out, "a", encoding="utf-8") as out:
                started = subprocess.Popen(command, env={**os.environ, **environment}, stdout=out, stderr=out)
            # Waited for by its number, like the others.
            started.returncode = 0
            self.leaders = [started.pid]
        else:
            environment.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), WORLD_SIZE="2")
            self.leaders = [self.fork({**environment, "RANK": str(rank)}, run) for rank in range(2)]
        self.exits: Dict[int, int] = {}

    def fork(self, environment: Dict[str, str], arguments: List[str]) -> int:
        """A process of the run, from this one, which has torch: to import it takes longer than the rest of an attempt."""
        import ddp

        sys.stderr.flush()
        child = os.fork()
        if child:
            return child
        code = 1
        try:
            os.environ.update(environment)
            out = os.open(self.out, os.O_WRONLY | os.O_APPEND)
            os.dup2(out, 1)
            os.dup2(out, 2)
            sys.argv = [str(EXAMPLE), *arguments]
            code = ddp.main()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def is_running(self) -> bool:
        for pid in self.leaders:
            if pid not in self.exits:
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    self.exits[pid] = os.waitstatus_to_exitcode(status)
        return len(self.exits) < len(self.leaders)

    def wait(self) -> None:
        until = time.monotonic() + LONG
        while self.is_running():
            if time.monotonic() > until:
                self.kill()
                raise SystemExit(f"the run does not end; {self.out} says more")
            time.sleep(0.005)

    def kill(self) -> None:
        """All processes of it, the parents first: nobody has time to react."""
        family = list(self.leaders)
        for one in family:
            family.extend(children(one))
        for one in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        # Those whose parent is gone are nobody's to wait for.
        until = time.monotonic() + LONG
        while any(is_alive(one) for one in family) and time.monotonic() < until:
            time.sleep(0.005)

    def terminate(self, whom: List[int]) -> None:
        """What Kubernetes sends to the pods that lose their node, or torchrun's to all of its own."""
        for place in whom if len(self.leaders) > 1 else [0]:
            os.kill(self.leaders[place], signal.SIGTERM)

    def to_the_end(self) -> str:
        """The digest of the weights."""
        self.wait()
        if any(self.exits.values()):
            raise SystemExit(f"the run ended with {self.exits}; {self.out} says why")
        lines = self.out.read_text(encoding="utf-8").splitlines()
        return next(line.split()[1] for line in lines if line.startswith("weights"))


def suffer(
    kind: str, place: int, folder: pathlib.Path, settings: argparse.Namespace, chance: random.Random
) -> Fault:
    """Starts the run, and ends it once it has made so many steps more."""
    before = len(read_ledger(folder))
    run = Run(folder, settings)
    # Up to one and a half intervals: some attempts save nothing, some twice. All faults fit into the run.
    steps = chance.randint(1, settings.save_every * 3 // 2)
    pause = chance.uniform(0.0, 0.05)
    # Of one process only, or of both.
    whom = chance.choice([[0], [1], [0, 1]])
    until = time.monotonic() + LONG
    while len(read_ledger(folder)) < before + steps:
        if not run.is_running():
            raise SystemExit(f"fault {place}: the run ended by itself; {run.out} says why")
        if time.monotonic() > until:
            run.kill()
            raise SystemExit(f"fault {place}: no step for {LONG:.0f} s")
        time.sleep(0.01)
    time.sleep(pause)
    if kind == "kill":
        run.kill()
    else:
        run.terminate(whom)
    run.wait()
    fault = Fault(kind, read_ledger(folder)[-1].step, newest_checkpoint(folder), heartbeat(folder))
    say(f"{place + 1}: {kind} after step {fault.last_step}, checkpoint {fault.newest_checkpoint}")
    return fault


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def children(pid: int) -> List[int]:
    found: List[int] = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found.extend(int(child) for child in task.read_text().split())
        except OSError:
            pass
    return found


def is_alive(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def read_ledger(folder: pathlib.Path) -> List[Line]:
    try:
        text = (folder / "ledger.txt").read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    # A line that was cut short by a kill has no end.
    lines = [line.split() for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return [Line(attempt, int(step), loss) for attempt, step, loss in lines]


def newest_checkpoint(folder: pathlib.Path) -> int:
    return max((int(path.stem.rpartition("-")[2]) for path in folder.glob("checkpoint-*.pt")), default=0)


def heartbeat(folder: pathlib.Path) -> Dict[str, Any]:
    document: Dict[str, Any] = json.loads((folder / "heartbeat.json").read_text(encoding="utf-8"))
    return document


def count(
    calm: List[Line], stormy: List[Line], faults: List[Fault], last: Dict[str, Any], settings: argparse.Namespace
) -> Dict[str, Any]:
    expected = {line.step: line.loss for line in calm}
    beats = [fault.heartbeat for fault in faults] + [last]
    # What a reader of heartbeats counts: from one attempt's last step to where the next went on.
    redone_by_heartbeats = [beat["step"] - after["restoredStep"] for beat, after in zip(beats, beats[1:])]
    redone = [fault.last_step - after["restoredStep"] for fault, after in zip(faults, beats[1:])]
    off_by = [abs(fault.last_step - fault.heartbeat["step"]) for fault in faults]
    saves_off = [fault.newest_checkpoint - fault.heartbeat.get("savedStep", 0) for fault in faults]
    of_terms = [steps for fault, steps in zip(faults, redone) if fault.kind == "term"]
    return {
        "kills": sum(fault.kind == "kill" for fault in faults),
        "terms": len(of_terms),
        "steps": settings.steps,
        "save_every": settings.save_every,
        "torch": importlib.metadata.version("torch"),
        "lines_of_ledger": len(stormy),
        "different_losses": sum(expected.get(line.step) != line.loss for line in stormy),
        "steps_missing": len(set(expected) - {line.step for line in stormy}),
        "redone": sum(redone),
        "redone_by_ledger": len(stormy) - len({line.step for line in stormy}),
        "redone_by_heartbeats": sum(redone_by_heartbeats),
        "redone_after_terms": sum(of_terms),
        "most_redone": max(redone, default=0),
        "beyond_interval": sum(max(steps - settings.save_every, 0) for steps in redone),
        "attempts_by_ledger": len({line.attempt for line in stormy}),
        "attempts_by_heartbeats": len({beat["attempt"] for beat in beats}),
        "steps_off": sum(off_by),
        "saved_steps_off": sum(steps != 0 for steps in saves_off),
        "last_step": last["step"],
        "last_saved_step": last.get("savedStep"),
    }


def broken(counted: Dict[str, Any], settings: argparse.Namespace) -> Optional[str]:
    """The first promise that does not hold."""
    # A kill may fall between two writes that belong together: the ledger and the heartbeat, or a checkpoint and the
    # heartbeat. Each can be behind by one step or one save then, and no more.
    between = counted["steps_off"]
    promises = {
        "losses as undisturbed": counted["different_losses"] == 0 and counted["steps_missing"] == 0,
        "weights as undisturbed": counted["equal_weights"],
        "no more than an interval again": counted["beyond_interval"] == 0,
        "nothing again after a SIGTERM": counted["redone_after_terms"] == 0,
        "the steps of the ledger": between <= counted["kills"]
        and abs(counted["redone_by_heartbeats"] - counted["redone_by_ledger"]) <= between,
        "the attempts of the ledger": counted["attempts_by_heartbeats"] == counted["attempts_by_ledger"],
        "the end": counted["last_step"] == counted["last_saved_step"] == settings.steps,
    }
    return next((promise for promise, holds in promises.items() if not holds), None)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
