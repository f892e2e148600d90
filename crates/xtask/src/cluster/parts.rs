//! Builds the programs of the cluster from Go modules, renders the manifests that come with
//! them, and packs the images; all of it once per set of versions.
//!
//! One `go build` for everything: the programs share most of their packages (all use
//! `k8s.io/*` at one version), and one call lets the go tool fill both cores by itself.

use super::layout::Layout;
use super::versions::Versions;
use crate::oci::{self, Image};
use crate::process;
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Images carry this name so that nothing can mistake them for the upstream builds.
pub(super) const IMAGES: &str = "flyball.test";

/// A folder with `bin/`, `images/` and `manifests/`.
pub(super) struct Parts {
    folder: PathBuf,
}

impl Parts {
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(name)
    }

    pub(super) fn manifest(&self, name: &str) -> PathBuf {
        self.folder.join("manifests").join(name)
    }

    /// The archives to load into every node.
    pub(super) fn images(&self) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(self.folder.join("images"))? {
            found.push(entry?.path());
        }
        found.sort();
        Ok(found)
    }
}

/// Returns the cached parts, building them first if this set of versions was never built.
pub(super) fn ensure(root: &Path, layout: &Layout) -> Result<Parts> {
    let versions = Versions::read(root)?;
    let parts = Parts { folder: layout.parts(&versions.key(root)?) };
    let complete = parts.folder.join("complete");
    if complete.exists() {
        return Ok(parts);
    }
    let begin = Instant::now();
    eprintln!("parts: building {} (10 to 20 minutes on two cores)", parts.folder.display());
    for folder in ["bin", "images", "manifests"] {
        std::fs::create_dir_all(parts.folder.join(folder))?;
    }
    compile(root, &versions, &parts)?;
    render(root, &versions, &parts)?;
    pack(&versions, &parts)?;
    std::fs::write(&complete, format!("{:.0} s\n", begin.elapsed().as_secs_f64()))?;
    eprintln!("parts: built in {:.1} min", begin.elapsed().as_secs_f64() / 60.0);
    prune(&layout.parts(""))?;
    Ok(parts)
}

/// Keeps the three newest sets, a gigabyte each: enough to go back and forth between two branches.
fn prune(sets: &Path) -> Result<()> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(sets)?.flatten() {
        found.push((entry.metadata()?.modified()?, entry.path()));
    }
    found.sort();
    found.reverse();
    for (_, old) in found.iter().skip(3) {
        std::fs::remove_dir_all(old).with_context(|| format!("{}", old.display()))?;
    }
    Ok(())
}

/// The cached parts, or an error that says how to get them.
pub(super) fn cached(root: &Path, layout: &Layout) -> Result<Parts> {
    let versions = Versions::read(root)?;
    let parts = Parts { folder: layout.parts(&versions.key(root)?) };
    if !parts.folder.join("complete").exists() {
        bail!("the cluster's parts are not built yet\n\nhint: cargo xtask cluster parts");
    }
    Ok(parts)
}

fn compile(root: &Path, versions: &Versions, parts: &Parts) -> Result<()> {
    let (major_minor, _) = versions.kubernetes.rsplit_once('.').context("kubernetes version")?;
    let minor = major_minor.trim_start_matches("v1.");
    let base = "k8s.io/component-base/version";
    let flags = format!(
        "-s -w -X {base}.gitVersion={k} -X {base}.gitMajor=1 -X {base}.gitMinor={minor} \
         -X sigs.k8s.io/kueue/pkg/version.GitVersion={kueue}",
        k = versions.kubernetes,
        kueue = versions.kueue,
    );
    let mut build = Command::new("go");
    build
        .current_dir(root.join("cluster/parts"))
        .env("CGO_ENABLED", "0")
        .args(["build", "-v", "-trimpath", "-ldflags", &flags, "-o"])
        .arg(parts.folder.join("bin/"))
        .args(["./coredns", "./etcd", "./pause", "./targets"]);
    for program in [
        "kube-apiserver",
        "kube-controller-manager",
        "kube-proxy",
        "kube-scheduler",
        "kubectl",
        "kubelet",
    ] {
        build.arg(format!("k8s.io/kubernetes/cmd/{program}"));
    }
    build.args([
        "sigs.k8s.io/jobset",
        "sigs.k8s.io/kueue/cmd/kueue",
        "sigs.k8s.io/kwok/cmd/kwok",
        "sigs.k8s.io/metrics-server/cmd/metrics-server",
    ]);
    compile_with_progress(&mut build)
        .context("the Go parts did not build\n\nhint: `go version` must be 1.26.4 or newer")
}

/// `go build -v` names each package as it begins; a line every half minute is enough to see that it
/// moves. What is not a package name is a complaint and is shown at once.
fn compile_with_progress(build: &mut Command) -> Result<()> {
    let mut child = build.stderr(Stdio::piped()).spawn().context("could not start go")?;
    let stderr = child.stderr.take().context("standard error was not piped")?;
    let (begin, mut last, mut packages) = (Instant::now(), Instant::now(), 0);
    for line in BufReader::new(stderr).lines() {
        let line = line?;
        if line.contains(' ') {
            eprintln!("{line}");
            continue;
        }
        packages += 1;
        if last.elapsed().as_secs() >= 30 {
            last = Instant::now();
            let minutes = begin.elapsed().as_secs_f64() / 60.0;
            eprintln!("parts: {packages} packages of about 3,400 in {minutes:.1} min");
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("`go build` ended with {status}");
    }
    Ok(())
}

/// The manifests that the modules themselves carry, pointed at our images.
fn render(root: &Path, versions: &Versions, parts: &Parts) -> Result<()> {
    let kustomized = [
        ("sigs.k8s.io/kueue", "config/default", "kueue", &versions.kueue),
        ("sigs.k8s.io/jobset", "config/default", "jobset", &versions.jobset),
        (
            "sigs.k8s.io/metrics-server",
            "manifests/base",
            "metrics-server",
            &versions.metrics_server,
        ),
    ];
    for (module, folder, name, version) in kustomized {
        let source = module_folder(root, module)?.join(folder);
        let text =
            process::read(Command::new(parts.program("kubectl")).arg("kustomize").arg(source))?;
        let image = format!("{IMAGES}/{name}:{version}");
        std::fs::write(parts.manifest(&format!("{name}.yaml")), adapt(&text, &image))?;
    }
    // kwok's own stages, without the one that ends every Job's pod at once: a gang must be seen running.
    let stages = module_folder(root, "sigs.k8s.io/kwok")?.join("kustomize/stage");
    let mut text = String::new();
    for stage in [
        "node/fast/node-initialize.yaml",
        "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
        "pod/fast/pod-ready.yaml",
        "pod/fast/pod-delete.yaml",
    ] {
        text.push_str("---\n");
        text.push_str(&std::fs::read_to_string(stages.join(stage)).context(stage)?);
    }
    std::fs::write(parts.manifest("kwok-stages.yaml"), text)?;
    Ok(())
}

/// Points a rendered manifest at our image, and lets metrics-server read kubelets whose serving
/// certificate no authority signed (each kubelet here signs its own).
fn adapt(manifest: &str, image: &str) -> String {
    let mut adapted = String::with_capacity(manifest.len());
    for line in manifest.lines() {
        let indent = &line[..line.len() - line.trim_start().len()];
        if line.trim_start().starts_with("image: ") {
            adapted.push_str(&format!("{indent}image: {image}\n"));
        } else if line.trim() == "imagePullPolicy: Always" {
            adapted.push_str(&format!("{indent}imagePullPolicy: IfNotPresent\n"));
        } else if line.trim() == "- --metric-resolution=15s" {
            adapted.push_str(&format!("{line}\n{indent}- --kubelet-insecure-tls\n"));
        } else {
            adapted.push_str(line);
            adapted.push('\n');
        }
    }
    adapted
}

fn module_folder(root: &Path, module: &str) -> Result<PathBuf> {
    let mut list = Command::new("go");
    list.current_dir(root.join("cluster/parts")).args(["list", "-m", "-f", "{{.Dir}}", module]);
    Ok(PathBuf::from(process::read(&mut list)?.trim()))
}

fn pack(versions: &Versions, parts: &Parts) -> Result<()> {
    // Where each upstream manifest expects its program.
    let images = [
        ("pause", "/pause", "v1"),
        ("coredns", "/coredns", versions.coredns.as_str()),
        ("jobset", "/manager", versions.jobset.as_str()),
        ("kueue", "/manager", versions.kueue.as_str()),
        ("metrics-server", "/metrics-server", versions.metrics_server.as_str()),
    ];
    for (name, target, version) in images {
        let program = parts.program(name);
        let image = Image {
            name: format!("{IMAGES}/{name}:{version}"),
            files: vec![(program, target.to_owned())],
            entrypoint: vec![target.to_owned()],
            environment: Vec::new(),
        };
        oci::write_archive(&image, &parts.folder.join("images").join(format!("{name}.tar")))?;
    }
    // Debian's build, with the loader and the one library it is linked to, and the helper that
    // finds pods for it.
    let image = Image {
        name: format!("{IMAGES}/prometheus:debian"),
        files: [
            ("/usr/bin/prometheus", "/prometheus"),
            ("/lib64/ld-linux-x86-64.so.2", "/lib64/ld-linux-x86-64.so.2"),
            ("/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6"),
        ]
        .map(|(from, to)| (PathBuf::from(from), to.to_owned()))
        .into_iter()
        .chain([(parts.program("targets"), "/targets".to_owned())])
        .collect(),
        entrypoint: vec!["/prometheus".into()],
        environment: Vec::new(),
    };
    oci::write_archive(&image, &parts.folder.join("images/prometheus.tar"))
}

#[cfg(test)]
mod tests {
    use super::adapt;

    #[test]
    fn a_manifest_is_pointed_at_our_image_and_keeps_its_indentation() {
        let manifest = "  args:\n    - --metric-resolution=15s\n    image: upstream/x:1\n    imagePullPolicy: Always\n";
        assert_eq!(
            adapt(manifest, "flyball.test/x:v2"),
            "  args:\n    - --metric-resolution=15s\n    - --kubelet-insecure-tls\n    \
             image: flyball.test/x:v2\n    imagePullPolicy: IfNotPresent\n"
        );
    }
}
