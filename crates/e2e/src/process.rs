//! Flyball's services as processes of this machine, where their memory and their end can be seen.

use crate::Story;
use crate::http::HttpAnswer;
use anyhow::{Context, Result, bail};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A service that runs until this is dropped.
pub struct ServiceProcess {
    child: Child,
    /// Where health, metrics and questions are.
    pub admin: SocketAddr,
    folder: PathBuf,
    name: String,
}

impl ServiceProcess {
    /// Starts `flyball COMMAND` with these settings; `admin` is in them too.
    pub fn start(story: &Story, command: &str, settings: &str, admin: SocketAddr) -> Result<Self> {
        Self::start_on(&story.cluster.kubeconfig, story, command, settings, admin)
    }

    /// The same, with another way to the cluster.
    pub fn start_on(
        kubeconfig: &Path,
        story: &Story,
        command: &str,
        settings: &str,
        admin: SocketAddr,
    ) -> Result<Self> {
        Self::start_as(&[], kubeconfig, story, command, settings, admin)
    }

    /// A service that takes itself for the container of a pod, the one of its own name.
    pub fn start_in_pod(
        story: &Story,
        command: &str,
        settings: &str,
        admin: SocketAddr,
    ) -> Result<Self> {
        let in_pod = [("KUBERNETES_SERVICE_HOST", "127.0.0.1")];
        Self::start_as(&in_pod, &story.cluster.kubeconfig, story, command, settings, admin)
    }

    fn start_as(
        environment: &[(&str, &str)],
        kubeconfig: &Path,
        story: &Story,
        command: &str,
        settings: &str,
        admin: SocketAddr,
    ) -> Result<Self> {
        let name = format!("{command}-{}", admin.port());
        let folder = std::env::temp_dir().join(format!("flyball-{}-{name}", story.namespace));
        std::fs::create_dir_all(&folder)?;
        let file = folder.join("settings.toml");
        std::fs::write(&file, settings)?;
        let log = std::fs::File::create(folder.join("log"))?;
        let child = Command::new(&story.cluster.binary)
            .args([command, "--config"])
            .arg(&file)
            .env("KUBECONFIG", kubeconfig)
            .env("HOSTNAME", &name)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("could not start flyball {command}"))?;
        Ok(Self { child, admin, folder, name })
    }

    /// The name that it gives itself.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits until it says that it is ready.
    pub async fn ready(&self) -> Result<()> {
        let what = format!("{} to be ready", self.name);
        let waited = crate::until(&what, Duration::from_secs(60), async || {
            let Ok(ready) = HttpAnswer::of(self.admin, "/readyz", None).await else {
                return Ok(None);
            };
            let Ok((status, _)) = ready.whole().await else { return Ok(None) };
            Ok((status == 200).then_some(()))
        });
        waited.await.with_context(|| format!("its log:\n{}", self.log()))
    }

    /// Everything that it wrote.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// A number of its page of metrics, summed over what it is told apart by; 0 if it is not there.
    pub async fn metric(&self, name: &str) -> Result<f64> {
        metric(self.admin, name).await
    }

    /// Bytes of memory that it holds.
    pub fn resident(&self) -> Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        let kilobytes =
            kilobytes.with_context(|| format!("{} has ended: {}", self.name, self.log()));
        Ok(kilobytes?.parse::<u64>()? << 10)
    }

    /// Ends it at once, as a machine that dies would.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for ServiceProcess {
    fn drop(&mut self) {
        // Gone already is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            crate::note(&self.log());
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Any other program, which runs until this is dropped.
pub struct RunningProgram(Child);

impl RunningProgram {
    /// Starts it without input. What it writes goes where the command says.
    pub fn start(command: &mut Command) -> Result<Self> {
        let started = command.stdin(Stdio::null()).spawn();
        let child = started
            .with_context(|| format!("could not start {}", command.get_program().display()))?;
        Ok(Self(child))
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        // Gone already is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An address of this machine that nobody uses and that is given only once.
///
/// Asking the kernel twice gave an operator the same port for two things. Below those that the kernel
/// gives to outgoing connections, and below those of Services.
pub fn free() -> Result<SocketAddr> {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    // Each story is a process; they begin apart.
    let first = std::process::id() % 100 * 100;
    for _ in 0..10_000 {
        let next = first + GIVEN.fetch_add(1, Ordering::Relaxed);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 20_000 + (next % 10_000) as u16));
        if TcpListener::bind(address).is_ok() {
            return Ok(address);
        }
    }
    bail!("no free port between 20000 and 30000")
}

/// A number of the page of metrics that is served here, summed over what it is told apart by; 0 if it is not there.
pub async fn metric(address: SocketAddr, name: &str) -> Result<f64> {
    let (_, page) = HttpAnswer::of(address, "/metrics", None).await?.whole().await?;
    let of_name =
        |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
    let values = page.lines().filter(of_name).filter_map(|line| line.rsplit(' ').next());
    values.map(|value| Ok(value.parse::<f64>()?)).sum()
}

#[cfg(test)]
mod tests {
    use super::free;
    use std::collections::BTreeSet;

    #[test]
    fn no_address_is_given_twice() {
        let given: BTreeSet<_> = (0..500).map(|_| free().unwrap()).collect();
        assert_eq!(given.len(), 500);
    }
}
