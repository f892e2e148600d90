//! Programs that run beside the bench: started with their cores and limits, ended with it.

use super::kernel;
use crate::process;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Which cores a program may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cores {
    /// The first: load and upstream.
    First,
    /// The second: whoever is measured, alone.
    Second,
    /// Any.
    All,
}

/// A program that ends with this value.
pub(crate) struct Running {
    child: Child,
    pub(crate) name: String,
}

/// Open files: 10,000 streams are 20,000 sockets at a proxy.
const OPEN_FILES: u32 = 200_000;

/// A program of this machine that has not answered by then is not ready.
const SOON: Duration = Duration::from_secs(2);

/// Open files that a program may have here: as many as wanted, or what this machine allows.
pub(crate) fn open_files() -> u32 {
    static FOUND: OnceLock<u32> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let limit = format!("--nofile={OPEN_FILES}");
        if process::read(Command::new("prlimit").args([&limit, "true"])).is_ok() {
            return OPEN_FILES;
        }
        let hard = ["--nofile", "--output", "HARD", "--noheadings", "--raw"];
        let text = process::read(Command::new("prlimit").args(hard)).unwrap_or_default();
        text.trim().parse().unwrap_or(1_024)
    })
}

impl Running {
    /// Starts a command; what it prints goes to `NAME.log` in the folder.
    pub(crate) fn start(
        name: &str,
        command: &Command,
        cores: Cores,
        folder: &Path,
    ) -> Result<Self> {
        let log = File::create(folder.join(format!("{name}.log")))?;
        let mut command = wrapped(command, cores);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().with_context(|| format!("starting {name}"))?;
        Ok(Self { child, name: name.to_owned() })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, such as `TERM`, to the program itself.
    pub(crate) fn signal(&self, signal: &str) -> Result<()> {
        signal_to(&[self.pid()], signal)
    }

    /// Puts it and everything below it before all others. On a shared machine a wait of 40 ms for
    /// a core is common, and it is not the program's.
    pub(crate) fn hurry(&self) -> Result<()> {
        for pid in kernel::tree(self.pid()) {
            let mut chrt = Command::new("chrt");
            chrt.args(["--fifo", "--all-tasks", "--pid", "1", &pid.to_string()]);
            process::read(&mut chrt)?;
        }
        Ok(())
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self, most: Duration) -> Result<bool> {
        let until = Instant::now() + most;
        while Instant::now() < until {
            if self.child.try_wait()?.is_some() {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(false)
    }

    /// Waits until it answers on a path.
    pub(crate) fn ready(&mut self, address: SocketAddr, path: &str, most: Duration) -> Result<()> {
        let until = Instant::now() + most;
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended with {status} before it was ready", self.name);
            }
            if get(address, path).is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")) {
                return Ok(());
            }
            if Instant::now() > until {
                bail!("{} is not ready after {} s", self.name, most.as_secs());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The children by their own numbers: a master that is killed leaves its workers.
        let tree = kernel::tree(self.pid());
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = signal_to(&tree, "CONT");
            let _ = signal_to(&tree, "KILL");
        }
        let _ = self.child.wait();
    }
}

fn signal_to(pids: &[u32], signal: &str) -> Result<()> {
    let mut kill = Command::new("kill");
    kill.arg(format!("-{signal}")).args(pids.iter().map(u32::to_string));
    process::read(&mut kill).map(drop)
}

/// The same command with its cores and its open files, by util-linux; before others on a shared
/// machine, where that is allowed.
pub(crate) fn wrapped(command: &Command, cores: Cores) -> Command {
    let mut outer = Command::new("nice");
    outer.args(["-n", "-10", "prlimit"]).arg(format!("--nofile={}", open_files()));
    // One core cannot be shared out.
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    match cores {
        Cores::First if count > 1 => drop(outer.args(["taskset", "-c", "0"])),
        Cores::Second if count > 1 => drop(outer.args(["taskset", "-c", "1"])),
        _ => {}
    }
    outer.arg(command.get_program()).args(command.get_args());
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(key, value),
            None => outer.env_remove(key),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        outer.current_dir(folder);
    }
    outer
}

/// The whole answer to a GET.
pub(crate) fn get(address: SocketAddr, path: &str) -> Result<String> {
    ask(address, &format!("GET {path} HTTP/1.1"), "", SOON)
}

/// The same by HTTP/1.0, so that a body is never in chunks: it ends with the connection. An API server
/// on a busy machine is given more time.
pub(crate) fn get_plainly(address: SocketAddr, path: &str) -> Result<String> {
    ask(address, &format!("GET {path} HTTP/1.0"), "", SOON * 5)
}

/// The whole answer to a POST of JSON.
pub(crate) fn post(address: SocketAddr, path: &str, body: &str) -> Result<String> {
    ask(address, &format!("POST {path} HTTP/1.1"), body, SOON)
}

fn ask(address: SocketAddr, what: &str, body: &str, wait: Duration) -> Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, wait)?;
    stream.set_read_timeout(Some(wait))?;
    write!(
        stream,
        "{what}\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Ports that nobody listens on, below those that the kernel gives to outgoing connections.
pub(crate) struct Ports(u16);

impl Ports {
    pub(crate) fn new() -> Self {
        // Two runs side by side start apart.
        Self(20_000 + (std::process::id() % 100) as u16 * 100)
    }

    pub(crate) fn next(&mut self) -> Result<SocketAddr> {
        for _ in 0..10_000 {
            let address = SocketAddr::from(([127, 0, 0, 1], self.0));
            self.0 = if self.0 >= 32_000 { 20_000 } else { self.0 + 1 };
            if TcpListener::bind(address).is_ok() {
                return Ok(address);
            }
        }
        bail!("no free port between 20000 and 32000")
    }

    /// Free ports in a row, as `emulate` takes them.
    pub(crate) fn row(&mut self, count: usize) -> Result<Vec<SocketAddr>> {
        let mut row: Vec<SocketAddr> = Vec::new();
        while row.len() < count {
            let next = self.next()?;
            if row.last().is_some_and(|last| last.port() + 1 != next.port()) {
                row.clear();
            }
            row.push(next);
        }
        Ok(row)
    }
}
