"""A training run that survives being killed: data parallel on CPUs, with checkpoints and a heartbeat.

    torchrun --standalone --nproc-per-node 2 python/examples/ddp.py --folder RUN --steps 400

A tiny model learns from data that is made from fixed seeds. Every so many steps, and when the heartbeat asks for it,
model, optimizer, step and the random numbers of every process go into one file, which is complete or not there. A start
goes on from the last complete one, and then makes the same steps, with the same losses, as a run that was never
disturbed: on the same machine, with the same torch and as many processes.

`ledger.txt` in the folder has a line for each step that was made: attempt, step, loss. It is for `faults.py` beside
this, which kills the run and counts; a run of one's own needs none.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import os
import pathlib
import sys
import time
from typing import Any, Dict, List, Tuple

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from flyball_heartbeat import Heartbeat

FEATURES, HIDDEN, BATCH = 32, 64, 16


def main() -> int:
    settings = arguments()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=settings.timeout_seconds))
    torch.manual_seed(1)
    model = DistributedDataParallel(network())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    settings.folder.mkdir(parents=True, exist_ok=True)
    # Each process has its own random numbers from here on: the dropout uses them.
    torch.manual_seed(1000 + dist.get_rank())

    every = settings.write_every_seconds
    file = os.environ.get("FLYBALL_HEARTBEAT_FILE", str(settings.folder / "heartbeat.json"))
    with Heartbeat(total_steps=settings.steps, file=file, write_every_seconds=every) as heartbeat:
        start = restore(settings.folder, model, optimizer)
        heartbeat.restored(start)
        for step in range(start + 1, settings.steps + 1):
            began = time.monotonic()
            loss = train_one_step(model, optimizer, step)
            time.sleep(max(settings.step_seconds - (time.monotonic() - began), 0.0))
            if dist.get_rank() == 0:
                note(settings.folder, heartbeat.attempt, step, loss)
            heartbeat.step(step)
            # After the step is reported: what asks for a save is a step that is not saved.
            save, stop = agreed(heartbeat.should_save(), heartbeat.stopping)
            if save or step % settings.save_every == 0 or step == settings.steps:
                with heartbeat.saving(step):
                    save_checkpoint(settings.folder, step, model, optimizer)
            if stop:
                dist.destroy_process_group()
                return 143
    if dist.get_rank() == 0:
        print("weights", digest(model), flush=True)
        (settings.folder / "weights.txt").write_text(digest(model) + "\n", encoding="utf-8")
    dist.destroy_process_group()
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="of the checkpoints and the ledger")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--save-every", type=int, default=20, help="steps between two checkpoints")
    parser.add_argument("--step-seconds", type=float, default=0.0, help="that a step takes at least")
    parser.add_argument("--timeout-seconds", type=float, default=60.0, help="that processes wait for each other")
    parser.add_argument("--write-every-seconds", type=float, default=1.0, help="of the heartbeat's file; 0 for each step")
    return parser.parse_args()


def network() -> nn.Module:
    return nn.Sequential(
        nn.Linear(FEATURES, HIDDEN), nn.GELU(), nn.Dropout(0.1), nn.Linear(HIDDEN, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, 1)
    )


def batch(step: int) -> Tuple[torch.Tensor, torch.Tensor]:
    """The data of a step, whenever it is made."""
    numbers = torch.Generator().manual_seed(step * 1009 + dist.get_rank())
    x = torch.randn(BATCH, FEATURES, generator=numbers)
    return x, torch.sin(x.sum(dim=1, keepdim=True))


def train_one_step(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> float:
    x, y = batch(step)
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    return float(mean) / dist.get_world_size()


def agreed(*answers: bool) -> List[bool]:
    """Whether any process says so: all of them save, and stop, at the same step."""
    flags = torch.tensor([float(answer) for answer in answers])
    dist.all_reduce(flags)
    return [flag > 0 for flag in flags.tolist()]


def save_checkpoint(folder: pathlib.Path, step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    mine = torch.get_rng_state()
    random = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(random, mine)
    if dist.get_rank() == 0:
        state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "random": random}
        beside = folder / "checkpoint.tmp"
        with open(beside, "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, folder / f"checkpoint-{step:08d}.pt")
        for old in checkpoints(folder)[2:]:
            old.unlink()
    # Nobody goes on before the checkpoint is complete, so that one that was announced is there.
    dist.barrier()


def checkpoints(folder: pathlib.Path) -> List[pathlib.Path]:
    """Newest first."""
    return sorted(folder.glob("checkpoint-*.pt"), reverse=True)


def restore(folder: pathlib.Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """The step of the newest checkpoint that can be read, which is loaded; 0 if there is none."""
    for path in checkpoints(folder):
        try:
            state: Dict[str, Any] = torch.load(path, weights_only=True)
        except Exception as error:
            print(f"{path} cannot be read: {error}", file=sys.stderr)
            continue
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"][dist.get_rank()])
        return int(state["step"])
    return 0


def note(folder: pathlib.Path, attempt: str, step: int, loss: float) -> None:
    with open(folder / "ledger.txt", "a", encoding="utf-8") as ledger:
        ledger.write(f"{attempt} {step} {loss.hex()}\n")


def digest(model: nn.Module) -> str:
    """Of every bit of every weight."""
    sha = hashlib.sha256()
    for name, weights in sorted(model.state_dict().items()):
        sha.update(name.encode())
        sha.update(bytes(weights.detach().contiguous().flatten().view(torch.uint8).tolist()))
    return sha.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
