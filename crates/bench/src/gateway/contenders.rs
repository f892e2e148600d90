//! Who is measured, and how each is started: one thread or worker, one core, nothing it can do
//! without, except ours, which has everything on.

use super::peers::Peers;
use super::running::{Cores, Ports, Running};
use anyhow::{Context, Result};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Contender {
    Ours,
    /// Ours with the settings that were given.
    With,
    /// An earlier version of ours.
    Before,
    Nginx,
    Haproxy,
    VllmRouter,
    SglangRouter,
    Litellm,
}

/// A contender that answers.
pub(super) struct Started {
    pub(super) contender: Contender,
    pub(super) running: Running,
    pub(super) address: SocketAddr,
}

/// What a start needs to know.
pub(super) struct Place<'a> {
    pub(super) folder: &'a Path,
    pub(super) peers: &'a Peers,
    /// The program `flyball`, if it has a gateway.
    pub(super) ours: Result<PathBuf, String>,
    /// An earlier `flyball`, if one was named.
    pub(super) before: Option<PathBuf>,
    /// More settings for ours, if a file of them was named.
    pub(super) with: Option<PathBuf>,
    pub(super) upstreams: &'a [SocketAddr],
    /// Answers are streams.
    pub(super) streams: bool,
}

impl Contender {
    pub(super) const ALL: [Self; 8] = [
        Self::Ours,
        Self::With,
        Self::Before,
        Self::Nginx,
        Self::Haproxy,
        Self::VllmRouter,
        Self::SglangRouter,
        Self::Litellm,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ours => "flyball",
            Self::With => "flyball-with",
            Self::Before => "flyball-before",
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::VllmRouter => "vllm-router",
            Self::SglangRouter => "sglang-router",
            Self::Litellm => "litellm",
        }
    }

    /// Starts it on the second core and waits until it passes requests on.
    pub(super) fn start(self, place: &Place<'_>, ports: &mut Ports) -> Result<Started> {
        let (address, spare) = (ports.next()?, ports.next()?);
        let folder = place.folder.join(self.name());
        std::fs::create_dir_all(&folder)?;
        let command = self.command(place, &folder, address, spare)?;
        let mut running = Running::start(self.name(), &command, Cores::Second, place.folder)?;
        let (ready, path) = match self {
            Self::Ours | Self::With | Self::Before => (spare, "/readyz"),
            Self::Litellm => (address, "/health/liveliness"),
            _ => (address, "/v1/models"),
        };
        // Python imports for half a minute on a busy machine.
        running.ready(ready, path, Duration::from_secs(120)).with_context(|| {
            let log = place.folder.join(format!("{}.log", self.name()));
            let text = std::fs::read_to_string(log).unwrap_or_default();
            let tail: Vec<&str> = text.lines().rev().take(8).collect();
            format!(
                "{} says: {}",
                self.name(),
                tail.into_iter().rev().collect::<Vec<_>>().join("\n")
            )
        })?;
        Ok(Started { contender: self, running, address })
    }

    fn command(
        self,
        place: &Place<'_>,
        folder: &Path,
        address: SocketAddr,
        spare: SocketAddr,
    ) -> Result<Command> {
        match self {
            Self::Ours => {
                let program = place.ours.clone().map_err(anyhow::Error::msg)?;
                ours(&program, place, folder, (address, spare), "")
            }
            Self::With => {
                let program = place.ours.clone().map_err(anyhow::Error::msg)?;
                let file = place.with.as_deref().context("no settings were named")?;
                let more = std::fs::read_to_string(file)
                    .with_context(|| format!("reading {}", file.display()))?;
                ours(&program, place, folder, (address, spare), &more)
            }
            Self::Before => {
                let program = place.before.as_deref().context("no earlier version was named")?;
                ours(program, place, folder, (address, spare), "")
            }
            Self::Nginx => {
                let servers = lines(place, |upstream| format!("        server {upstream};"));
                let buffering = if place.streams { "off" } else { "on" };
                let config = configured(
                    include_str!("templates/nginx.conf"),
                    &[
                        ("{folder}", &folder.display().to_string()),
                        ("{listen}", &address.to_string()),
                        ("{servers}", &servers),
                        ("{buffering}", buffering),
                    ],
                );
                let path = folder.join("nginx.conf");
                std::fs::write(&path, config)?;
                let program = place.peers.folder_of("nginx")?.join("usr/sbin/nginx");
                let mut command = Command::new(program);
                command.arg("-p").arg(folder).arg("-c").arg(path);
                Ok(command)
            }
            Self::Haproxy => {
                let mut index = 0;
                let servers = lines(place, |upstream| {
                    index += 1;
                    format!("    server engine{index} {upstream} pool-max-conn 4096")
                });
                let listen = address.to_string();
                let template = include_str!("templates/haproxy.cfg");
                let config =
                    configured(template, &[("{listen}", &listen), ("{servers}", &servers)]);
                let path = folder.join("haproxy.cfg");
                std::fs::write(&path, config)?;
                let home = place.peers.folder_of("haproxy")?;
                let mut command = Command::new(home.join("usr/sbin/haproxy"));
                command.arg("-db").arg("-f").arg(path);
                command.env("LD_LIBRARY_PATH", home.join("usr/lib/x86_64-linux-gnu"));
                Ok(command)
            }
            Self::VllmRouter | Self::SglangRouter => {
                // Their cheapest policy; with `cache_aware` they keep a tree of every prompt's text.
                let policy = "round_robin";
                place.peers.router(self.name(), address, spare, policy, place.upstreams)
            }
            Self::Litellm => litellm(place, folder, address),
        }
    }
}

fn ours(
    program: &Path,
    place: &Place<'_>,
    folder: &Path,
    (address, spare): (SocketAddr, SocketAddr),
    more: &str,
) -> Result<Command> {
    let quoted = place.upstreams.iter().map(|upstream| format!("\"{upstream}\""));
    let config = configured(
        include_str!("templates/gateway.toml"),
        &[
            ("{listen}", &address.to_string()),
            ("{admin}", &spare.to_string()),
            ("{servers}", &quoted.collect::<Vec<_>>().join(", ")),
        ],
    );
    let path = folder.join("gateway.toml");
    std::fs::write(&path, format!("{config}\n{more}"))?;
    let mut command = Command::new(program);
    command.arg("gateway").arg("--config").arg(path);
    Ok(command)
}

fn litellm(place: &Place<'_>, folder: &Path, address: SocketAddr) -> Result<Command> {
    let servers = lines(place, |upstream| {
        format!(
            "  - model_name: mock\n    litellm_params: {{model: openai/mock, api_base: \
             \"http://{upstream}/v1\", api_key: none}}"
        )
    });
    let path = folder.join("litellm.yaml");
    let config = configured(include_str!("templates/litellm.yaml"), &[("{servers}", &servers)]);
    std::fs::write(&path, config)?;
    let bin = place.peers.folder_of("litellm")?.join("bin");
    let mut command = Command::new(bin.join("litellm"));
    command.args(["--host", "127.0.0.1", "--port", &address.port().to_string()]);
    command.args(["--num_workers", "1", "--telemetry", "False", "--config"]).arg(path);
    // Without these it asks the network for a list of prices, and logs every request.
    command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True").env("LITELLM_LOG", "ERROR");
    command.env("LITELLM_MODE", "PRODUCTION");
    Ok(command)
}

fn lines(place: &Place<'_>, line: impl FnMut(&SocketAddr) -> String) -> String {
    place.upstreams.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn configured(template: &str, values: &[(&str, &str)]) -> String {
    values.iter().fold(template.to_owned(), |text, (mark, value)| text.replace(mark, value))
}
