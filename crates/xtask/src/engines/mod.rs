//! Real inference engines for tests: what is needed of each is built once and kept in the cache.
//!
//! `cargo xtask engines` gives a static `llama-server`, a tiny model, SmolLM2 and an image with the
//! first two; CI runs it. `--vllm` adds the real vLLM on a CPU, which takes longer. `clients` runs
//! the official Python clients through the gateway, `arguments` the engines' parsers over what the
//! operator tells them. Nothing here knows what the gateway does.
//!
//! Read `pins` (what exactly), `shelf` (where it is kept), then the part that you need.

mod arguments;
mod clients;
mod debian;
mod llama;
mod models;
mod pins;
mod python;
mod shelf;
mod torch;
mod training;
mod vllm;

pub(crate) use clients::environment as clients_python;
pub(crate) use llama::IMAGE;
pub(crate) use training::{IMAGE as PYTHON_IMAGE, TrainingParts};

use anyhow::Result;
use pins::Pins;
use shelf::Shelf;
use std::path::{Path, PathBuf};

/// What `cargo xtask engines` can do.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Get the real vLLM on a CPU too (a minute, 1.5 GB)
    #[arg(long)]
    vllm: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Serve the tiny model with vLLM on loopback until it is ended
    VllmServe(vllm::ServeArgs),
    /// Hold the arguments that the operator gives to engines against the engines' own parsers
    Arguments,
    /// Run the official OpenAI and Anthropic clients through the gateway
    Clients(clients::Args),
}

pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    match &args.command {
        Some(Command::VllmServe(serve)) => vllm::serve(root, serve),
        Some(Command::Arguments) => hold_arguments(root),
        Some(Command::Clients(clients)) => clients::run(root, clients),
        None => {
            let built = build(root)?;
            println!("llama-server   {}", built.llama_server.display());
            println!("image          {} in {}", llama::IMAGE, built.archive.display());
            println!("models         {}, {}", built.nano.display(), built.smollm2.display());
            if args.vllm {
                let home = vllm::ensure(&Pins::read(root)?, root, &Shelf::open()?)?;
                println!("vllm           {}", home.display());
            }
            println!("engines: all there; tests find them in {}", built.folder.display());
            Ok(())
        }
    }
}

/// The interpreter that has PyTorch for CPUs; it is made at the first call.
pub(crate) fn torch_python(root: &Path) -> Result<PathBuf> {
    torch::ensure(root)
}

/// What training runs of stories are made of. `None` if PyTorch is not in the cache and may not be downloaded.
pub(crate) fn training(root: &Path, may_download: bool) -> Result<Option<TrainingParts>> {
    let shelf = Shelf::open()?;
    if !may_download && !training::is_cached(root, &shelf)? {
        return Ok(None);
    }
    training::build(root, &shelf).map(Some)
}

/// What `cargo xtask engines arguments` does.
pub(crate) fn hold_arguments(root: &Path) -> Result<()> {
    arguments::run(root)
}

pub(crate) fn parsers_are_cached(root: &Path) -> Result<bool> {
    Ok(arguments::is_cached(&Pins::read(root)?, &Shelf::open()?))
}

/// The parts that CI needs.
pub(crate) struct Built {
    /// Where each of them stands under its plain name.
    pub(crate) folder: PathBuf,
    pub(crate) llama_server: PathBuf,
    pub(crate) archive: PathBuf,
    nano: PathBuf,
    smollm2: PathBuf,
}

/// Gets and builds whatever of them is not in the cache.
pub(crate) fn build(root: &Path) -> Result<Built> {
    let (pins, shelf) = (Pins::read(root)?, Shelf::open()?);
    let models = models::nano(&pins, root, &shelf)?;
    let nano = shelf.show("nano.gguf", &models.join("nano.gguf"))?;
    shelf.show("nano-hf", &models.join("nano-hf"))?;
    let smollm2_file = models::smollm2(&pins, &shelf)?;
    let smollm2 = shelf.show("smollm2.gguf", &smollm2_file)?;
    let home = llama::ensure(&pins, &shelf)?;
    let llama_server = shelf.show("llama-server", &home.join("llama-server"))?;
    let archive =
        llama::pack(&shelf, &home.join("llama-server"), &models.join("nano.gguf"), &smollm2_file)?;
    Ok(Built { folder: shelf.shown(), llama_server, archive, nano, smollm2 })
}

/// The image of Debian's llama-server, where ours is not built and there is no time to do that.
pub(crate) fn debian(root: &Path) -> Result<PathBuf> {
    let (pins, shelf) = (Pins::read(root)?, Shelf::open()?);
    let nano = models::nano(&pins, root, &shelf)?.join("nano.gguf");
    debian::pack(&pins, &shelf, &nano, &models::smollm2(&pins, &shelf)?)
}

/// True when nothing of that would have to be built.
pub(crate) fn are_cached(root: &Path) -> Result<bool> {
    let (pins, shelf) = (Pins::read(root)?, Shelf::open()?);
    Ok(llama::is_cached(&pins, &shelf) && models::are_cached(&pins, root, &shelf)?)
}
