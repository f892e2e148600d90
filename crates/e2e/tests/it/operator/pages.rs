//! The files that the operator's guide shows are as short as it says, and a real API server takes them.

use anyhow::{Result, ensure};
use flyball_e2e::{figure, in_namespace, kubectl};
use std::path::Path;

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn the_files_of_the_operators_guide_are_short_and_taken() -> Result<()> {
    in_namespace(&[], async |story| {
        super::rig::crds(story)?;
        for (name, most) in [("adopt", 6), ("serve", 15)] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/operator");
            let text = std::fs::read_to_string(folder.join(format!("{name}.yaml")))?;
            // Their own namespace need not exist.
            let here =
                text.replace("namespace: team-a", &format!("namespace: {}", story.namespace));
            ensure!(here != text, "{name}.yaml is in another namespace than it was");
            kubectl(&story.cluster, &["create", "--dry-run=server", "--filename", "-"], &here)?;
            let lines = text.lines().count();
            figure(
                &format!("operator.{name}_yaml_lines"),
                lines as f64,
                "lines",
                &format!("<={most}"),
            )?;
            ensure!(lines <= most, "{name}.yaml has {lines} lines");
        }
        Ok(())
    })
    .await
}
