"""Callbacks for Lightning and for Transformers, so that a run there needs one more line.

    trainer = lightning.Trainer(callbacks=[lightning_callback("checkpoints/flyball.ckpt")])
    trainer = transformers.Trainer(callbacks=[transformers_callback()])

Neither framework is imported before one of these functions is called, and this package depends on neither.
"""

from __future__ import annotations

import math
import os
import time
from typing import Any, Optional, Tuple

from . import Heartbeat

__all__ = ["lightning_callback", "transformers_callback"]


def lightning_callback(path: Optional[str] = None, heartbeat: Optional[Heartbeat] = None, **settings: Any) -> Any:
    """A callback for `lightning` (or `pytorch_lightning`).

    With `path` it saves there whenever the heartbeat asks for it: the file is replaced once the new one is complete, and
    `trainer.fit(..., ckpt_path=path if os.path.exists(path) else None)` goes on from it. Without, it only reports.
    Checkpoints of other callbacks are reported too. `settings` are those of `Heartbeat`.
    """
    try:
        from lightning.pytorch import Callback  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        from pytorch_lightning import Callback  # type: ignore[import-not-found,unused-ignore,no-redef]
    return type("FlyballHeartbeat", (_LightningHooks, Callback), {})(path, heartbeat, settings)


class _LightningHooks:
    """What Lightning calls. A step is one of the optimizer."""

    def __init__(self, path: Optional[str], heartbeat: Optional[Heartbeat], settings: Any) -> None:
        self._path, self._heartbeat, self._settings = path, heartbeat, settings
        self._is_ours = heartbeat is None
        # The step and the start of a save that has begun and may not be complete.
        self._begun: Optional[Tuple[int, float]] = None

    def on_train_start(self, trainer: Any, module: Any) -> None:
        total = trainer.estimated_stepping_batches
        if self._heartbeat is None:
            self._settings.setdefault("rank", int(trainer.global_rank))
            if math.isfinite(total) and total > 0:
                self._settings.setdefault("total_steps", int(total))
            self._heartbeat = Heartbeat(**self._settings)
        self._heartbeat.restored(trainer.global_step)

    def on_train_batch_start(self, trainer: Any, module: Any, *_: Any) -> None:
        self._saved()

    def on_train_batch_end(self, trainer: Any, module: Any, *_: Any) -> None:
        self._saved()
        heartbeat, step = self._heartbeat, int(trainer.global_step)
        if heartbeat is None or step <= heartbeat.last_step:
            # Gradients were gathered, and no step was made.
            return
        heartbeat.step(step)
        save, stop = heartbeat.should_save(), heartbeat.stopping
        if trainer.world_size > 1:
            anywhere = trainer.strategy.reduce_boolean_decision
            save, stop = anywhere(save, all=False), anywhere(stop, all=False)
        if save and self._path is not None:
            self._save(trainer, step, heartbeat)
        if stop:
            trainer.should_stop = True

    def _save(self, trainer: Any, step: int, heartbeat: Heartbeat) -> None:
        path = os.fspath(self._path or "")
        with heartbeat.saving(step):
            # Waits for every process, so that the file is complete when it gets its name.
            trainer.save_checkpoint(path + ".tmp")
            if trainer.is_global_zero:
                os.replace(path + ".tmp", path)
        self._begun = None

    def on_save_checkpoint(self, trainer: Any, module: Any, checkpoint: Any) -> None:
        self._begun = (int(trainer.global_step), time.monotonic())

    def _saved(self) -> None:
        """Lightning says when a save begins. That it goes on says that it has ended."""
        if self._begun is not None and self._heartbeat is not None:
            step, began = self._begun
            self._heartbeat.saved(step, time.monotonic() - began)
        self._begun = None

    def on_train_end(self, trainer: Any, module: Any) -> None:
        self._saved()

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        # Of a save that was under way nobody knows whether it is complete.
        self._begun = None
        self._close()

    def teardown(self, trainer: Any, module: Any, stage: str) -> None:
        self._saved()
        self._close()

    def _close(self) -> None:
        if self._is_ours and self._heartbeat is not None:
            self._heartbeat.close()
            self._heartbeat = None


def transformers_callback(heartbeat: Optional[Heartbeat] = None, **settings: Any) -> Any:
    """A callback for the Trainer of `transformers`, which saves when the heartbeat asks for it, beside its own schedule."""
    from transformers import TrainerCallback  # type: ignore[import-not-found,unused-ignore]

    return type("FlyballHeartbeat", (_TransformersHooks, TrainerCallback), {})(heartbeat, settings)


class _TransformersHooks:
    """What the Trainer calls."""

    def __init__(self, heartbeat: Optional[Heartbeat], settings: Any) -> None:
        self._heartbeat, self._settings = heartbeat, settings
        self._is_ours = heartbeat is None
        self._idle_since = time.monotonic()

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._heartbeat is None:
            self._settings.setdefault("rank", int(args.process_index))
            self._settings.setdefault("total_steps", int(state.max_steps))
            self._heartbeat = Heartbeat(**self._settings)
        self._heartbeat.restored(state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        heartbeat = self._heartbeat
        if heartbeat is None:
            return
        tokens = getattr(state, "num_input_tokens_seen", 0)
        heartbeat.step(state.global_step, tokens=tokens if tokens else None)
        save, stop = heartbeat.should_save(), heartbeat.stopping
        if args.world_size > 1:
            save, stop = _anywhere(args.device, save, stop)
        if save:
            control.should_save = True
        if stop:
            control.should_training_stop = True
        self._idle_since = time.monotonic()

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        # It comes before a save, and is none.
        self._idle_since = time.monotonic()

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._heartbeat is not None:
            self._heartbeat.saved(state.global_step, time.monotonic() - self._idle_since)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._is_ours and self._heartbeat is not None:
            self._heartbeat.close()
            self._heartbeat = None


def _anywhere(device: Any, *answers: bool) -> Tuple[bool, ...]:
    """Whether any process says so."""
    import torch  # type: ignore[import-not-found,unused-ignore]

    flags = torch.tensor([float(answer) for answer in answers], device=device)
    torch.distributed.all_reduce(flags)
    return tuple(bool(flag > 0) for flag in flags.tolist())
