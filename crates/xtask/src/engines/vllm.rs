//! The real vLLM on a CPU: 1.5 GB and half a minute to start, so a longer command and not in CI.
//!
//! As its packages come it wants CUDA: five gigabytes that no test machine can use. What is left
//! out, stubbed and renamed here was found by running it; each step says what happens without it.

use super::models;
use super::pins::{Pins, Vllm};
use super::python::{self, Form};
use super::shelf::{Part, Shelf};
use crate::process;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where and how to serve.
#[derive(clap::Args)]
pub(super) struct ServeArgs {
    #[arg(long, default_value_t = 8000)]
    port: u16,
    /// More options for `vllm serve`
    #[arg(last = true)]
    more: Vec<String>,
}

/// The folder of vLLM's virtual environment.
pub(super) fn ensure(pins: &Pins, root: &Path, shelf: &Shelf) -> Result<PathBuf> {
    let script = root.join(CPU_TORCH);
    let text = std::fs::read_to_string(&script).context(CPU_TORCH)?;
    let wheel = pins.vllm.wheel();
    let without = pins.vllm.without.join(" ");
    let made_from = [&wheel.sha256, &pins.vllm.uv, &pins.vllm.torch, &without, &text];
    let made_from = made_from.map(String::as_str);
    let part = Part { name: "vllm", version: &wheel.version, made_from: &made_from };
    let folder = shelf
        .once(&part, "1 to 3 minutes, 1.5 GB", |folder| install(&pins.vllm, &script, folder))?;
    shelf.show("vllm", &folder.join("venv"))
}

/// Becomes `vllm serve` on loopback; ends when that does.
pub(super) fn serve(root: &Path, args: &ServeArgs) -> Result<()> {
    let (pins, shelf) = (Pins::read(root)?, Shelf::open()?);
    ensure(&pins, root, &shelf)?;
    shelf.show("nano-hf", &models::nano(&pins, root, &shelf)?.join("nano-hf"))?;
    let mut command = Command::new("bash");
    command.arg(root.join("cluster/engines/vllm.sh")).arg(shelf.shown());
    command.arg(args.port.to_string()).args(&args.more);
    // Replaced and not started: a signal to this process then reaches vLLM itself.
    Err(std::os::unix::process::CommandExt::exec(&mut command)).context("could not start vLLM")
}

pub(super) const CPU_TORCH: &str = "cluster/engines/cpu_torch.py";

fn install(pins: &Vllm, script: &Path, folder: &Path) -> Result<()> {
    let work = folder.join("work");
    let wheel = python::download(&pins.wheel(), Form::Wheel, &work)?;
    let uv = python::environment(&work.join("uv"), &[format!("uv=={}", pins.uv)])?;
    let venv = folder.join("venv");
    process::read(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    let python = venv.join("bin/python");
    // The wheel asks for a torch that is in no registry (2.13.0+cpu), and pip cannot be overruled.
    let overrides = work.join("overrides.txt");
    std::fs::write(&overrides, overrides_of(pins))?;
    process::read(
        Command::new(uv)
            .args(["-m", "uv", "pip", "install", "--quiet", "--link-mode", "copy", "--python"])
            .arg(&python)
            .arg("--override")
            .arg(&overrides)
            .arg(&wheel),
    )?;
    let packages = packages_of(&python)?;
    process::read(Command::new(&python).arg(script).arg(&packages))?;
    name_the_release(&packages, &pins.wheel().version)?;
    trim(&packages)?;
    // Three processes import everything one after the other: without this a start takes 72 to
    // 114 s and not 27 to 36. Some packages carry files for other Pythons, which do not compile.
    let mut compile = Command::new(&python);
    compile.args(["-m", "compileall", "-q", "-q", "-f", "-j", "0"]);
    compile.args(["--invalidation-mode", "unchecked-hash"]).arg(&packages);
    compile.output().context("could not start compileall")?;
    std::fs::remove_dir_all(&work)?;
    Ok(())
}

/// One line a package; a marker that is never true removes it.
fn overrides_of(pins: &Vllm) -> String {
    let mut lines = vec![format!("torch=={}", pins.torch)];
    lines.extend(pins.without.iter().map(|name| format!("{name} ; python_version < \"3\"")));
    lines.join("\n") + "\n"
}

pub(super) fn packages_of(python: &Path) -> Result<PathBuf> {
    let ask = "import sysconfig; print(sysconfig.get_path('purelib'))";
    Ok(PathBuf::from(process::read(Command::new(python).args(["-c", ask]))?.trim()))
}

/// vLLM looks itself up by its own name, which the third party's wheel does not have ("No package
/// metadata was found for vllm"); `+cpu` in the version is what selects the platform.
fn name_the_release(packages: &Path, version: &str) -> Result<()> {
    let folder = packages.join(format!("vllm-{version}+cpu.dist-info"));
    std::fs::create_dir_all(&folder)?;
    let text = format!("Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n");
    Ok(std::fs::write(folder.join("METADATA"), text)?)
}

/// Keeps one of the three instruction sets that the wheel brings, and no debug symbols.
fn trim(packages: &Path) -> Result<()> {
    let vllm = packages.join("vllm");
    std::fs::rename(vllm.join("_C_AVX2.abi3.so"), vllm.join("_C.abi3.so"))
        .context("the wheel has no AVX2 extension")?;
    for spare in ["vllm/_C_AVX512.abi3.so", "torch/include", "torch/share"] {
        let path = packages.join(spare);
        if path.is_dir() {
            std::fs::remove_dir_all(&path)?;
        } else if path.exists() {
            std::fs::remove_file(&path)?;
        }
    }
    let libraries =
        ["vllm/_C.abi3.so", "torch/lib/libtorch_cpu.so", "torch/lib/libtorch_python.so"];
    let mut strip = Command::new("strip");
    strip.arg("--strip-unneeded").args(libraries.map(|library| packages.join(library)));
    process::read(&mut strip).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwanted_packages_get_a_marker_that_no_python_meets() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text = overrides_of(&Pins::read(&root).unwrap().vllm);
        assert!(text.starts_with("torch==2."));
        assert!(text.contains("\ntorchvision ; python_version < \"3\"\n"));
    }
}
