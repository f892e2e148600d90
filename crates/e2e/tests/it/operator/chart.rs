//! The chart in one namespace that takes restricted pods only: installed, tested, asked, upgraded, removed.

use super::rig::crds;
use super::shell::Shell;
use anyhow::{Context, Result, ensure};
use flyball_e2e::{Story, in_namespace, note};

/// What the chart is told. The words in capitals are replaced.
const VALUES: &str = r#"
image: { repository: REPOSITORY, tag: TAG, pullPolicy: Never }
rbac:
  act: true
  namespaces: [NAMESPACE]
  adminClients: [{ kind: ServiceAccount, name: admin-client, namespace: NAMESPACE }]
operator:
  replicas: 2
  config: { tick_seconds: 1 }
  resources: { requests: { cpu: 10m, memory: 32Mi } }
gateway:
  enabled: true
  replicas: 1
  config:
    open: true
    timeouts: { settle_ms: 2000 }
  resources: { requests: { cpu: 10m, memory: 32Mi } }
"#;

/// A model whose engine a namespace for restricted pods takes.
const MODEL: &str = r#"
apiVersion: flyball.dev/v1alpha1
kind: ModelService
metadata: { name: model, namespace: NAMESPACE }
spec:
  model: llama-3.1-8b
  scaling: { mode: Act, min: 2, max: 4 }
  variants:
    - gpusPerReplica: 0
      engine:
        kind: VLLM
        image: REPOSITORY:TAG
        command: [/flyball]
        args: [emulate, --served-name=model, --host=0.0.0.0]
        drainSeconds: 5
        podOverlay: { spec: { securityContext: { runAsNonRoot: true } } }
"#;

/// Without a gateway first, as by the chart's defaults, and with one then.
/// `admin-client` may ask the operator and nothing else; `other` may not.
const SCRIPT: &str = r#"set -e
helm install RELEASE charts/flyball --namespace NAMESPACE --values FOLDER/values.yaml \
    --set gateway.enabled=false --wait --timeout 2m
helm upgrade RELEASE charts/flyball --namespace NAMESPACE --values FOLDER/values.yaml --wait --timeout 2m
helm test RELEASE --namespace NAMESPACE --logs
kubectl apply --filename FOLDER/model.yaml
kubectl wait modelservice/model --namespace NAMESPACE --for=condition=Ready --timeout=60s
kubectl wait modelservice/model --namespace NAMESPACE --for=jsonpath='{.status.readyReplicas}'=2 --timeout=60s
kubectl get --raw /api/v1/namespaces/NAMESPACE/services/RELEASE-gateway:http/proxy/v1/models
for who in admin-client other; do
    kubectl create serviceaccount $who --namespace NAMESPACE
    kubectl config view --raw --minify > FOLDER/$who
    kubectl --kubeconfig FOLDER/$who config set-credentials $who \
        --token "$(kubectl create token $who --namespace NAMESPACE)"
    kubectl --kubeconfig FOLDER/$who config set-context --current --user $who
done
KUBECONFIG=FOLDER/admin-client flyball decisions --operator NAMESPACE/RELEASE-operator
if KUBECONFIG=FOLDER/other flyball decisions --operator NAMESPACE/RELEASE-operator; then exit 9; fi
if kubectl --kubeconfig FOLDER/admin-client get secrets --namespace NAMESPACE; then exit 9; fi
helm upgrade RELEASE charts/flyball --namespace NAMESPACE --reset-then-reuse-values \
    --set operator.config.tick_seconds=2 --wait --timeout 2m
helm uninstall RELEASE --namespace NAMESPACE --wait
kubectl get deployment/model-main --namespace NAMESPACE --output jsonpath='{.status.readyReplicas} stay'
"#;

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn operator_is_installed_by_its_chart_in_a_namespace_of_restricted_pods() -> Result<()> {
    in_namespace(&[], async |story| {
        crds(story)?;
        let shell = Shell::new(&story.cluster)?;
        let release = format!("flyball-{}", story.namespace);
        let outcome = play(story, &shell, &release);
        // Roles that belong to no namespace would outlive it.
        let rest = format!(
            "helm uninstall {release} --namespace {} --ignore-not-found\n\
             kubectl get clusterroles --output name --selector app.kubernetes.io/instance={release}",
            story.namespace
        );
        shell.run("rest", &rest)?;
        outcome?;
        let rest = shell.read("rest")?;
        ensure!(!rest.contains("clusterrole"), "these are left: {rest}");
        Ok(())
    })
    .await
}

fn play(story: &Story, shell: &Shell, release: &str) -> Result<()> {
    let image = story.cluster.image.rsplit_once(':').context("an image without a tag")?;
    let folder = shell.folder.display().to_string();
    let filled = |text: &str| {
        let words = [
            ("REPOSITORY", image.0),
            ("TAG", image.1),
            ("NAMESPACE", &story.namespace),
            ("RELEASE", release),
            ("FOLDER", &folder),
        ];
        words.iter().fold(text.to_owned(), |text, (word, with)| text.replace(word, with))
    };
    std::fs::write(shell.folder.join("values.yaml"), filled(VALUES))?;
    std::fs::write(shell.folder.join("model.yaml"), filled(MODEL))?;
    let status = shell.run("chart", &filled(SCRIPT))?;
    let printed = shell.read("chart")?;
    note(&printed);
    ensure!(status.success(), "a command failed: {status}");
    ensure!(printed.contains("check passed"), "`helm test` did not check the cluster");
    ensure!(printed.contains(&format!("{}/model", story.namespace)), "the operator told nothing");
    ensure!(printed.contains(r#""id":"model""#), "the gateway does not serve what was applied");
    ensure!(printed.contains("2 stay"), "replicas did not stay");
    Ok(())
}
