//! llama.cpp's server as one static program of 14 MB, and the image that pods run.

use super::pins::Pins;
use super::python::{self, Form};
use super::shelf::{Part, Shelf};
use crate::oci::{self, Image};
use crate::process;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name that test pods ask for.
pub(crate) const IMAGE: &str = "flyball.test/llama-server:dev";

/// Where the models are in it.
pub(super) const NANO: &str = "/models/nano.gguf";
pub(super) const SMOLLM2: &str = "/models/smollm2.gguf";

/// Static and for any x86 machine with AVX2, whichever builds it; neither OpenMP (its threads spin
/// at barriers, ruinous on busy cores) nor TLS; and nothing fetched while building, which the
/// prebuilt web page would be. Warnings of other people's code are not ours to read.
const SETTINGS: &[&str] = &[
    "CMAKE_BUILD_TYPE=Release",
    "CMAKE_C_FLAGS=-w",
    "CMAKE_CXX_FLAGS=-w",
    "CMAKE_EXE_LINKER_FLAGS=-static",
    "BUILD_SHARED_LIBS=OFF",
    "GGML_STATIC=ON",
    "GGML_NATIVE=OFF",
    "GGML_AVX=ON",
    "GGML_AVX2=ON",
    "GGML_BMI2=ON",
    "GGML_F16C=ON",
    "GGML_FMA=ON",
    "GGML_OPENMP=OFF",
    "LLAMA_BUILD_EXAMPLES=OFF",
    "LLAMA_BUILD_TESTS=OFF",
    "LLAMA_BUILD_UI=OFF",
    "LLAMA_OPENSSL=OFF",
    "LLAMA_USE_PREBUILT_UI=OFF",
];

/// A folder with the program `llama-server`.
pub(super) fn ensure(pins: &Pins, shelf: &Shelf) -> Result<PathBuf> {
    with_part(pins, |part| {
        shelf.once(part, "7 to 15 minutes on two cores", |folder| {
            compile(pins, folder)
                .with_context(|| format!("llama-server did not build\n\n{}", pins.debian_hint()))
        })
    })
}

pub(super) fn is_cached(pins: &Pins, shelf: &Shelf) -> bool {
    with_part(pins, |part| shelf.has(part))
}

/// The image archive, packed anew when the program or a model changed.
pub(super) fn pack(shelf: &Shelf, program: &Path, nano: &Path, smollm2: &Path) -> Result<PathBuf> {
    let sources = [program, nano, smollm2].map(|path| path.display().to_string());
    let made_from: Vec<&str> = sources.iter().map(String::as_str).chain([IMAGE]).collect();
    let part = Part { name: "llama-image", version: "dev", made_from: &made_from };
    let folder = shelf.once(&part, "a second", |folder| {
        let files = [(program, "/llama-server"), (nano, NANO), (smollm2, SMOLLM2)];
        let image = Image {
            name: IMAGE.into(),
            files: files.map(|(from, to)| (from.to_owned(), to.to_owned())).to_vec(),
            entrypoint: vec!["/llama-server".into()],
            environment: Vec::new(),
        };
        oci::write_archive(&image, &folder.join("llama-server.tar"))
    })?;
    Ok(folder.join("llama-server.tar"))
}

fn with_part<T>(pins: &Pins, then: impl FnOnce(&Part<'_>) -> T) -> T {
    let mut made_from = vec![pins.llama_server.sha256.as_str()];
    made_from.extend(SETTINGS);
    let version = pins.llama_server.version.as_str();
    then(&Part { name: "llama-server", version, made_from: &made_from })
}

fn compile(pins: &Pins, folder: &Path) -> Result<()> {
    let work = folder.join("work");
    let archive = python::download(&pins.llama_server, Form::Source, &work)?;
    let source = work.join("source");
    std::fs::create_dir_all(&source)?;
    process::read(
        Command::new("tar")
            .arg("--extract")
            .arg("--gzip")
            .arg("--strip-components=1")
            .arg("--file")
            .arg(&archive)
            .arg("--directory")
            .arg(&source),
    )?;
    let built = work.join("built");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(source.join("vendor/llama.cpp")).arg("-B").arg(&built);
    configure.args(["-G", "Ninja"]);
    configure.args(SETTINGS.iter().map(|setting| format!("-D{setting}")));
    process::read(&mut configure)?;
    // Errors go to standard output, so it is shown; --quiet leaves nothing else on it.
    process::run(Command::new("ninja").arg("-C").arg(&built).args(["--quiet", "llama-server"]))?;
    let program = built.join("bin/llama-server");
    process::read(Command::new("strip").arg(&program))?;
    std::fs::copy(&program, folder.join("llama-server"))?;
    std::fs::remove_dir_all(&work)?;
    Ok(())
}
