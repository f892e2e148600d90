"""The callbacks, with stand-ins for the frameworks: which versions they were tried with is in docs/guides/heartbeat.md."""

from __future__ import annotations

import pathlib
import tempfile
import types
import unittest
from typing import Any

from flyball_heartbeat import Heartbeat
from flyball_heartbeat.callbacks import _LightningHooks, _TransformersHooks


class Trainer:
    """What of Lightning's is used."""

    def __init__(self, step: int = 0) -> None:
        self.global_step, self.global_rank, self.world_size = step, 0, 1
        self.estimated_stepping_batches: float = 100
        self.is_global_zero, self.should_stop = True, False

    def save_checkpoint(self, path: str) -> None:
        self.hooks.on_save_checkpoint(self, None, {})
        pathlib.Path(path).write_text(str(self.global_step), encoding="utf-8")

    hooks: Any


class Callbacks(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "last.ckpt"
        self.heartbeat = Heartbeat(rank=1, handle_sigterm=False)
        self.addCleanup(self.heartbeat.close)
        self.heartbeat.is_reporting = True

    def asked_to_save(self) -> None:
        number = self.heartbeat.document().get("instructionsNumber", 0) + 1
        self.heartbeat._instruct(b'{"version":1,"number":%d,"saveNow":true}' % number)

    def lightning(self, step: int = 0) -> Trainer:
        trainer = Trainer(step)
        trainer.hooks = _LightningHooks(str(self.path), self.heartbeat, {})
        trainer.hooks.on_train_start(trainer, None)
        return trainer

    def test_lightning_reports_steps_of_the_optimizer_and_saves_when_asked(self) -> None:
        trainer = self.lightning(step=10)
        self.asked_to_save()
        trainer.hooks.on_train_batch_end(trainer, None)
        self.assertFalse(self.path.exists(), "no step was made: gradients were gathered")
        trainer.global_step = 11
        trainer.hooks.on_train_batch_end(trainer, None)
        self.assertEqual(self.path.read_text(encoding="utf-8"), "11")
        said = self.heartbeat.document()
        self.assertEqual((said["step"], said["savedStep"], said["restoredStep"]), (11, 11, 10))
        self.assertEqual([one.name for one in self.path.parent.iterdir()], ["last.ckpt"])

    def test_a_save_of_another_callback_counts_once_lightning_goes_on(self) -> None:
        trainer = self.lightning()
        trainer.global_step = 5
        trainer.hooks.on_train_batch_end(trainer, None)
        trainer.hooks.on_save_checkpoint(trainer, None, {})
        self.assertNotIn("savedStep", self.heartbeat.document())
        trainer.hooks.on_train_batch_start(trainer, None)
        self.assertEqual(self.heartbeat.document()["savedStep"], 5)

    def test_a_save_that_ended_in_an_exception_does_not_count(self) -> None:
        trainer = self.lightning()
        trainer.global_step = 5
        trainer.hooks.on_train_batch_end(trainer, None)
        trainer.hooks.on_save_checkpoint(trainer, None, {})
        trainer.hooks.on_exception(trainer, None, OSError("disk full"))
        trainer.hooks.teardown(trainer, None, "fit")
        self.assertNotIn("savedStep", self.heartbeat.document())

    def test_both_stop_after_sigterm(self) -> None:
        trainer = self.lightning()
        self.heartbeat._terminated_at = 0.0
        trainer.global_step = 1
        trainer.hooks.on_train_batch_end(trainer, None)
        self.assertTrue(trainer.should_stop)
        control = self.transformers(step=2)
        self.assertTrue(control.should_training_stop)

    def transformers(self, step: int, save: bool = False) -> Any:
        hooks = _TransformersHooks(self.heartbeat, {})
        args = types.SimpleNamespace(process_index=0, world_size=1)
        state = types.SimpleNamespace(max_steps=100, global_step=step - 1, num_input_tokens_seen=64)
        control = types.SimpleNamespace(should_save=False, should_training_stop=False)
        hooks.on_train_begin(args, state, control, model=None)
        state.global_step = step
        if save:
            self.asked_to_save()
        hooks.on_step_end(args, state, control, model=None)
        if control.should_save:
            hooks.on_save(args, state, control)
        hooks.on_train_end(args, state, control)
        return control

    def test_transformers_reports_and_saves_when_asked(self) -> None:
        self.assertFalse(self.transformers(step=3).should_save)
        self.assertTrue(self.transformers(step=8, save=True).should_save)
        said = self.heartbeat.document()
        self.assertEqual((said["step"], said["savedStep"], said["restoredStep"]), (8, 8, 7))
        self.assertEqual(said["tokens"], 64)


if __name__ == "__main__":
    unittest.main()
