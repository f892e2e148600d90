//! Processes that end in the middle of a step.

use std::sync::{Arc, Mutex};

/// Whether a process lives. All that it does to disks and stores asks here, before and after.
#[derive(Clone, Debug, Default)]
pub(crate) struct Life(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    /// Durable steps until it ends; `None` for long.
    left: Option<u64>,
    dead: bool,
}

/// The process is no more.
#[derive(Debug)]
pub(crate) struct Dead;

impl Life {
    /// Ends it at the step after so many.
    pub(crate) fn ends_after(&self, steps: u64) {
        self.0.lock().unwrap().left = Some(steps);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.lock().unwrap().dead
    }

    /// One half of a step: before what it does, or after. Ending between two steps and ending when one is done, but before
    /// its answer came, are both of them.
    pub(crate) fn half(&self) -> Result<(), Dead> {
        let mut inner = self.0.lock().unwrap();
        if let Some(left) = &mut inner.left {
            if *left == 0 {
                inner.dead = true;
            } else {
                *left -= 1;
            }
        }
        if inner.dead { Err(Dead) } else { Ok(()) }
    }
}
