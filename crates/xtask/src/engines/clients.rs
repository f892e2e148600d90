//! The official Python clients, unchanged, through the gateway to a real engine.

use super::pins::Pins;
use super::python;
use super::shelf::{Part, Shelf};
use crate::process;
use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Which gateway.
#[derive(clap::Args)]
pub(super) struct Args {
    /// A gateway that runs already; without, one is started in front of llama-server
    #[arg(long, value_name = "URL")]
    gateway: Option<String>,
    /// The program to start; without, it is built
    #[arg(long, value_name = "FILE", conflicts_with = "gateway")]
    flyball: Option<PathBuf>,
}

pub(super) fn run(root: &Path, args: &Args) -> Result<()> {
    let python = environment(root)?;
    match &args.gateway {
        Some(gateway) => call(root, &python, gateway),
        None => {
            let flyball = args.flyball.clone().map_or_else(|| build(root), Ok)?;
            let started = Started::new(root, &flyball)?;
            call(root, &python, &format!("http://{}", started.gateway))
        }
    }
}

const MODEL: &str = "nano";
const EMBEDDINGS: &str = "nano-embeddings";

/// The keys that `clients.py` holds, and the requests a minute of each.
const KEYS: [(&str, Option<u32>); 2] = [("test-key", None), ("test-key-limited", Some(1))];

/// The interpreter that has the official clients.
pub(crate) fn environment(root: &Path) -> Result<PathBuf> {
    let packages = Pins::read(root)?.clients.packages;
    let made_from = packages.join(" ");
    let part = Part { name: "clients", version: "1", made_from: &[&made_from] };
    let folder = Shelf::open()?.once(&part, "half a minute", |folder| {
        python::environment(&folder.join("venv"), &packages).map(drop)
    })?;
    Ok(folder.join("venv/bin/python"))
}

fn call(root: &Path, python: &Path, gateway: &str) -> Result<()> {
    process::run(
        Command::new(python).arg(root.join("cluster/engines/clients.py")).arg(gateway).args([
            "--model",
            MODEL,
            "--embeddings",
            EMBEDDINGS,
        ]),
    )
}

fn build(root: &Path) -> Result<PathBuf> {
    process::run(Command::new("cargo").current_dir(root).args([
        "build",
        "--locked",
        "--package",
        "flyball-cli",
    ]))?;
    Ok(crate::checkout::target_folder(root)?.join("debug/flyball"))
}

/// Two engines and a gateway; all ended when dropped.
struct Started {
    gateway: SocketAddr,
    children: Vec<Child>,
}

impl Started {
    fn new(root: &Path, flyball: &Path) -> Result<Self> {
        let built = super::build(root)?;
        let (chat, embeddings, gateway, admin) =
            (free_address()?, free_address()?, free_address()?, free_address()?);
        let mut started = Self { gateway, children: Vec::new() };
        for (address, name, more) in
            [(chat, MODEL, ["--parallel", "4"]), (embeddings, EMBEDDINGS, ["--pooling", "mean"])]
        {
            let mut engine = Command::new(&built.llama_server);
            engine.arg("--model").arg(&built.nano).args(["--alias", name]);
            engine.args(["--host", "127.0.0.1", "--port", &address.port().to_string()]);
            engine.args(["--ctx-size", "32768", "--threads", "1", "--threads-batch", "1"]);
            engine.args(more);
            if name == EMBEDDINGS {
                engine.arg("--embeddings");
            }
            started.start(engine, address)?;
        }
        let config = Shelf::open()?.shown().join("clients.toml");
        std::fs::write(&config, settings(gateway, admin, chat, embeddings))?;
        let mut command = Command::new(flyball);
        command.args(["gateway", "--config"]).arg(&config);
        started.start(command, gateway)?;
        Ok(started)
    }

    /// Starts one and waits until its port is open.
    fn start(&mut self, mut command: Command, address: SocketAddr) -> Result<()> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.children.push(child.spawn().with_context(|| format!("could not start {name}"))?);
        let deadline = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(address).is_err() {
            let ended = self.children.last_mut().and_then(|child| child.try_wait().ok().flatten());
            if let Some(status) = ended {
                bail!("{name} ended with {status} before it listened");
            }
            anyhow::ensure!(Instant::now() < deadline, "{name} does not listen on {address}");
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        for child in &mut self.children {
            // Gone already is what is wanted.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn settings(
    listen: SocketAddr,
    admin: SocketAddr,
    chat: SocketAddr,
    embeddings: SocketAddr,
) -> String {
    let mut text = format!("listen = \"{listen}\"\nadmin = \"{admin}\"\n");
    for (key, limit) in KEYS {
        let digest: String = Sha256::digest(key).iter().map(|b| format!("{b:02x}")).collect();
        text += &format!("\n[[keys]]\nname = \"{key}\"\nsha256 = \"{digest}\"\n");
        if let Some(limit) = limit {
            text += &format!("requests_per_minute = {limit}\n");
        }
    }
    for (name, address) in [(MODEL, chat), (EMBEDDINGS, embeddings)] {
        text += &format!(
            "\n[[models]]\nname = \"{name}\"\nendpoints = [\"{address}\"]\nengine = \"llama-cpp\"\n"
        );
    }
    text
}

fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
