//! Which cluster to talk to, and a client for it.
//!
//! On a laptop the kubeconfig says it, in a pod the service account does. Nothing here waits
//! without end: a credential plugin of the kubeconfig is a foreign program, and it is given the
//! same time as a request.

use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use crate::flags::ClusterArgs;
use crate::output::{Exit, Failure, duration};

/// A client and the address it talks to.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) client: Client,
    pub(crate) address: String,
}

pub(crate) async fn connect(args: &ClusterArgs) -> Result<Cluster, Failure> {
    let mut config = configuration(args).await?;
    config.connect_timeout = Some(args.timeout);
    // A retry inside the client would eat the time limit and hide that the server is unwell.
    config.default_retry = false;
    let address = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    let client = build(config, args.timeout).await?;
    Ok(Cluster { client, address })
}

/// A client without credentials for any HTTP server, such as a Prometheus given by address.
pub(crate) async fn anonymous(url: http::Uri, limit: Duration) -> Result<Client, Failure> {
    // Plain HTTP needs no authorities, and where there are none, as in our image, looking for them fails.
    let plain = url.scheme_str() != Some("https");
    let mut config = Config::new(url);
    config.root_cert = plain.then(Vec::new);
    config.connect_timeout = Some(limit);
    config.default_retry = false;
    build(config, limit).await
}

async fn configuration(args: &ClusterArgs) -> Result<Config, Failure> {
    let options = KubeConfigOptions { context: args.context.clone(), ..Default::default() };
    if let Some(file) = &args.kubeconfig {
        let place = file.display().to_string();
        let refused = |error| config_failure(&error, None).at(&place);
        let kubeconfig = Kubeconfig::read_from(file).map_err(refused)?;
        let contexts = context_names(&kubeconfig);
        return Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .map_err(|error| config_failure(&error, Some(&contexts)).at(&place));
    }
    if args.context.is_some() {
        let contexts = Kubeconfig::read().map(|kubeconfig| context_names(&kubeconfig)).ok();
        return Config::from_kubeconfig(&options)
            .await
            .map_err(|error| config_failure(&error, contexts.as_deref()));
    }
    Config::infer().await.map_err(|error| {
        Failure::new(Exit::Unknown, "cannot determine which cluster to use")
            .because(format!("no kubeconfig ({}), and this is not a pod", innermost(&error)))
            .hint("set KUBECONFIG, or name a file with --kubeconfig")
    })
}

/// What was named and is not there is wrong usage; the rest leaves us without a cluster.
fn config_failure(error: &KubeconfigError, contexts: Option<&[String]>) -> Failure {
    let what = "cannot determine which cluster to use";
    match error {
        KubeconfigError::LoadContext(name) => {
            let failure = Failure::new(Exit::Usage, what).because(format!("no context {name:?}"));
            match contexts {
                Some(names) if !names.is_empty() => {
                    failure.hint(format!("--context is one of: {}", names.join(", ")))
                }
                _ => failure.hint("kubectl config get-contexts lists what exists"),
            }
        }
        KubeconfigError::CurrentContextNotSet => Failure::new(Exit::Unknown, what)
            .because("the kubeconfig has no current context")
            .hint("name one with --context, or: kubectl config use-context NAME"),
        KubeconfigError::ReadConfig(..) | KubeconfigError::Parse(_) => {
            Failure::new(Exit::Usage, what)
                .because(innermost(error))
                .hint("--kubeconfig names a kubeconfig file, in YAML")
        }
        _ => Failure::new(Exit::Unknown, what)
            .because(innermost(error))
            .hint("kubectl config view shows what is set"),
    }
}

fn context_names(kubeconfig: &Kubeconfig) -> Vec<String> {
    kubeconfig.contexts.iter().map(|context| context.name.clone()).collect()
}

/// Making a client may run a credential plugin and wait for it, so it gets a thread and a limit.
async fn build(config: Config, limit: Duration) -> Result<Client, Failure> {
    let what = "cannot make a client for the cluster";
    let client = tokio::task::spawn_blocking(move || Client::try_from(config));
    match tokio::time::timeout(limit, client).await {
        Ok(Ok(Ok(client))) => Ok(client),
        Ok(Ok(Err(error))) => Err(Failure::new(Exit::Unknown, what)
            .because(innermost(&error))
            .hint("kubectl get --raw /version uses the same credentials: does it work?")),
        Ok(Err(_)) => Err(Failure::new(Exit::Usage, what)),
        Err(_) => Err(Failure::new(Exit::Unknown, what)
            .because(format!("the credential plugin did not answer in {}", duration(limit)))
            .hint("kubectl get --raw /version uses the same plugin; --timeout gives it longer")),
    }
}

/// The last cause in the chain: it names the thing, the ones before it name our layers.
pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    let text = error.to_string();
    // "Connection refused (os error 111)": the number says nothing more.
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}
