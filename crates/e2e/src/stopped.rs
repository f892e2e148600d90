//! A process that stands still, and goes on in any case.

use anyhow::{Context, Result, ensure};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A stopped process. Dropped, it goes on.
pub struct Stopped {
    pid: u32,
    watchdog: Child,
}

impl Stopped {
    /// Stops a process. Should this one die, another lets it go on after `longest`.
    pub fn new(pid: u32, longest: Duration) -> Result<Self> {
        let late = format!("sleep {} && kill -CONT {pid}", longest.as_secs());
        // In a session of its own: whoever ends the story with all its children does not end this.
        let watchdog = Command::new("setsid")
            .args(["sh", "-c", &late])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("could not start the process that lets the other one go on")?;
        let stopped = Self { pid, watchdog };
        ensure!(stopped.signal("-STOP"), "process {pid} could not be stopped");
        Ok(stopped)
    }

    /// It goes on.
    pub fn go_on(self) {
        drop(self);
    }

    fn signal(&self, name: &str) -> bool {
        let sent = Command::new("kill").args([name, &self.pid.to_string()]).status();
        sent.is_ok_and(|status| status.success())
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if self.signal("-CONT") {
            // Otherwise it tries again later.
            let _ = self.watchdog.kill();
            let _ = self.watchdog.wait();
        } else {
            crate::note(&format!("process {} could not be let go on", self.pid));
        }
    }
}
