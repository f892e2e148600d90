//! Writes a container image as an OCI layout in a tar file, with no daemon and no build tool.
//!
//! Enough for what we pack: one layer of static programs on nothing, a user that is not root.
//! Same files, same bytes: no time stamps, fixed order.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// The user every image of ours runs as; pods with `runAsNonRoot` need a number, not a name.
pub(crate) const USER: u64 = 65532;

/// An image of static programs.
pub(crate) struct Image {
    pub(crate) name: String,
    /// Files on this machine and their absolute places in the image.
    pub(crate) files: Vec<(PathBuf, String)>,
    pub(crate) entrypoint: Vec<String>,
    /// `NAME=value`.
    pub(crate) environment: Vec<String>,
}

/// Writes `image` to `archive`, in the form that `ctr images import` and `skopeo` read.
pub(crate) fn write_archive(image: &Image, archive: &Path) -> Result<()> {
    let layer = Blob::new(layer_of(image)?);
    let config = Blob::new(serde_json::to_vec(&json!({
        "architecture": "amd64",
        "os": "linux",
        "config": { "User": format!("{USER}:{USER}"), "Entrypoint": image.entrypoint, "Env": image.environment },
        "rootfs": { "type": "layers", "diff_ids": [layer.digest] },
    }))?);
    let manifest = Blob::new(serde_json::to_vec(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config.descriptor("application/vnd.oci.image.config.v1+json"),
        "layers": [layer.descriptor("application/vnd.oci.image.layer.v1.tar")],
    }))?);
    let mut named = manifest.descriptor("application/vnd.oci.image.manifest.v1+json");
    named["annotations"] = json!({
        "io.containerd.image.name": image.name,
        "org.opencontainers.image.ref.name": image.name,
    });
    let index = serde_json::to_vec(&json!({ "schemaVersion": 2, "manifests": [named] }))?;

    let file = File::create(archive).with_context(|| format!("{}", archive.display()))?;
    let mut tar = tar::Builder::new(BufWriter::new(file));
    append(&mut tar, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#, 0o644)?;
    append(&mut tar, "index.json", &index, 0o644)?;
    for blob in [&config, &manifest, &layer] {
        let path = format!("blobs/{}", blob.digest.replace(':', "/"));
        append(&mut tar, &path, &blob.content, 0o644)?;
    }
    tar.into_inner()?.flush()?;
    Ok(())
}

fn layer_of(image: &Image) -> Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    for (source, target) in &image.files {
        let mut content = Vec::new();
        File::open(source)
            .and_then(|mut file| file.read_to_end(&mut content))
            .with_context(|| format!("could not read {}", source.display()))?;
        append(&mut tar, target.trim_start_matches('/'), &content, 0o755)?;
    }
    Ok(tar.into_inner()?)
}

fn append<W: Write>(
    tar: &mut tar::Builder<W>,
    path: &str,
    content: &[u8],
    mode: u32,
) -> Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    tar.append_data(&mut header, path, content)?;
    Ok(())
}

/// Content and its digest, which is asked for in three places and costs seconds for a large layer.
struct Blob {
    content: Vec<u8>,
    digest: String,
}

impl Blob {
    fn new(content: Vec<u8>) -> Self {
        let digest = digest_of(&content);
        Self { content, digest }
    }

    fn descriptor(&self, media_type: &str) -> Value {
        json!({ "mediaType": media_type, "digest": self.digest, "size": self.content.len() })
    }
}

fn digest_of(content: &[u8]) -> String {
    let hex: String = Sha256::digest(content).iter().map(|b| format!("{b:02x}")).collect();
    format!("sha256:{hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_files_give_the_same_bytes_and_every_blob_has_its_digest_as_name() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        std::fs::write(&program, b"not really a program").unwrap();
        let image = Image {
            name: "flyball.test/x:v1".into(),
            files: vec![(program, "/x".into())],
            entrypoint: vec!["/x".into()],
            environment: Vec::new(),
        };
        let (first, second) = (folder.path().join("1.tar"), folder.path().join("2.tar"));
        write_archive(&image, &first).unwrap();
        write_archive(&image, &second).unwrap();
        assert_eq!(std::fs::read(&first).unwrap(), std::fs::read(&second).unwrap());

        let mut blobs = 0;
        let mut archive = tar::Archive::new(File::open(&first).unwrap());
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().to_string_lossy().into_owned();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            if let Some(hex) = path.strip_prefix("blobs/sha256/") {
                assert_eq!(digest_of(&content), format!("sha256:{hex}"));
                blobs += 1;
            }
        }
        assert_eq!(blobs, 3);
    }
}
