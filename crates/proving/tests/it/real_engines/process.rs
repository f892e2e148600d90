//! A real engine as a process of this machine.

use super::rig::{get, until};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Where `cargo xtask engines` put them; `None`, with the reason printed, if it did not.
pub(crate) fn parts(needed: &[&str]) -> Option<PathBuf> {
    let given = std::env::var_os("FLYBALL_ENGINES").map(PathBuf::from);
    let folder = given.clone().or_else(|| Some(cache()?.join("engines/now")));
    let missing = |folder: &PathBuf| needed.iter().find(|name| !folder.join(name).exists());
    match (folder.as_ref().and_then(missing), &folder) {
        (None, Some(_)) => folder,
        (name, _) => {
            let reason = format!("skipped: no {name:?}; `cargo xtask engines` brings the engines");
            assert!(given.is_none(), "{reason}");
            #[expect(clippy::print_stderr, reason = "a test that skips must say why")]
            {
                eprintln!("{reason}");
            }
            None
        }
    }
}

fn cache() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from);
    set("FLYBALL_CACHE")
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join("flyball")))
        .or_else(|| Some(set("HOME")?.join(".cache/flyball")))
}

/// A running engine; killed when dropped.
pub(crate) struct Engine {
    pub(crate) address: SocketAddr,
    child: Child,
}

impl Engine {
    /// llama-server with the tiny model in so many slots, of 32,768 tokens each: at thousands of
    /// tokens a second a stream still lasts for seconds.
    pub(crate) async fn llama(parts: &Path, slots: u32) -> Self {
        let address = free_address();
        let context = 32_768 * slots;
        let mut command = Command::new(parts.join("llama-server"));
        command.arg("--model").arg(parts.join("nano.gguf"));
        command.args(["--host", "127.0.0.1", "--port", &address.port().to_string()]);
        command.args(["--parallel", &slots.to_string(), "--ctx-size", &context.to_string()]);
        // More threads than idle cores spin against each other.
        command.args(["--threads", "1", "--threads-batch", "1", "--metrics", "--slots"]);
        // A comment a second: tests see that they flow when nothing else does.
        command.args(["--sse-ping-interval", "1"]);
        Self::start(command, address, Duration::from_secs(120)).await
    }

    /// vLLM with the same model.
    pub(crate) async fn vllm(parts: &Path, shutdown_timeout_s: u32) -> Self {
        let address = free_address();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cluster/engines/vllm.sh");
        let mut command = Command::new("bash");
        command.arg(script).arg(parts).arg(address.port().to_string());
        command.args(["--shutdown-timeout", &shutdown_timeout_s.to_string()]);
        Self::start(command, address, Duration::from_secs(300)).await
    }

    async fn start(mut command: Command, address: SocketAddr, within: Duration) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // A group of its own: vLLM has children, and none may outlive the test.
        let child = child.process_group(0).spawn().expect("an engine that starts");
        let engine = Self { address, child };
        until("a healthy engine", within, async || {
            let (status, _) = get(address, "/health").await?;
            (status == 200).then_some(())
        })
        .await;
        engine
    }

    /// Sends SIGTERM, as the kubelet does.
    pub(crate) fn term(&self) {
        self.signal("-TERM");
    }

    /// Sends SIGSTOP: it neither answers nor closes anything any more.
    pub(crate) fn stop(&self) {
        self.signal("-STOP");
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().expect("kill").success());
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("a child of ours");
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child of ours").is_some()
    }

    /// Slots that llama-server works in.
    pub(crate) async fn busy_slots(&self) -> Option<usize> {
        let (_, body) = get(self.address, "/slots").await?;
        let slots: serde_json::Value = serde_json::from_str(&body).ok()?;
        Some(slots.as_array()?.iter().filter(|slot| slot["is_processing"] == true).count())
    }

    /// Tokens that llama-server has written.
    pub(crate) async fn written_tokens(&self) -> Option<u64> {
        let (_, page) = get(self.address, "/metrics").await?;
        let line =
            page.lines().find_map(|line| line.strip_prefix("llamacpp:tokens_predicted_total "));
        line?.trim().parse().ok()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        // Gone already is what is wanted.
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.child.wait();
    }
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port")
}
