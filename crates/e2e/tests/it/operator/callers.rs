//! A gateway that takes its callers from Tenants, as several stories start it.

use anyhow::Result;
use flyball_e2e::http::HttpAnswer;
use flyball_e2e::process::{ServiceProcess, free};
use flyball_e2e::{Story, until};
use serde_json::json;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

pub(super) const CHAT: &str = "/v1/chat/completions";

/// The longest that anything of a story about callers may take.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// A gateway with one model, `m`.
pub(super) struct Gateway {
    pub(super) process: ServiceProcess,
    pub(super) http: SocketAddr,
}

/// Its settings with `more` behind those of `[tenants]`, and where requests and questions go.
pub(super) fn settings(
    story: &Story,
    engine: SocketAddr,
    more: &str,
) -> Result<(String, SocketAddr, SocketAddr)> {
    let (http, admin) = (free()?, free()?);
    let settings = format!(
        "listen = \"{http}\"\nadmin = \"{admin}\"\nthreads = 1\n\n\
         [[models]]\nname = \"m\"\nendpoints = [\"{engine}\"]\n\n\
         [kubernetes]\nwatch = \"model-services\"\nnamespaces = [\"{}\"]\n\n\
         [tenants]\nwatch = true\n{more}",
        story.namespace
    );
    Ok((settings, http, admin))
}

impl Gateway {
    pub(super) fn start(story: &Story, engine: SocketAddr, more: &str) -> Result<Self> {
        Self::start_on(&story.cluster.kubeconfig, story, engine, more)
    }

    /// The same, with another way to the cluster.
    pub(super) fn start_on(
        kubeconfig: &Path,
        story: &Story,
        engine: SocketAddr,
        more: &str,
    ) -> Result<Self> {
        let (settings, http, admin) = settings(story, engine, more)?;
        let process = ServiceProcess::start_on(kubeconfig, story, "gateway", &settings, admin)?;
        Ok(Self { process, http })
    }

    /// The status of a request of whoever has this key or token.
    pub(super) async fn ask(&self, secret: &str) -> Result<u16> {
        let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "Hello" }] });
        let headers = format!("authorization: Bearer {secret}\r\n");
        let answer = HttpAnswer::with(self.http, CHAT, &headers, Some(&body)).await?;
        Ok(answer.whole().await?.0)
    }

    /// Waits until whoever has this key or token gets this status.
    pub(super) async fn until(&self, secret: &str, status: u16) -> Result<()> {
        let what = format!("an answer of {status}");
        until(&what, LONG, async || Ok((self.ask(secret).await? == status).then_some(()))).await
    }

    /// A page of its admin address.
    pub(super) async fn page(&self, path: &str) -> Result<String> {
        Ok(HttpAnswer::of(self.process.admin, path, None).await?.whole().await?.1)
    }

    /// Everything that it says: its log and its pages.
    pub(super) async fn output(&self) -> Result<String> {
        let mut output = self.process.log();
        for path in ["/metrics", "/config", "/state", "/readyz"] {
            output += &self.page(path).await?;
        }
        Ok(output)
    }
}
