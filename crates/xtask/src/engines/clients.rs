//! The official Python clients, unchanged, through the gateway to a real engine.

use super::pins::Pins;
use super::python;
use super::shelf::{Part, Shelf};
use crate::process;
use anyhow::Result;
use std::path::Path;
use std::process::Command;

/// Where the gateway is.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Address of a running gateway, such as http://127.0.0.1:8080
    #[arg(long)]
    gateway: String,
}

pub(super) fn run(root: &Path, args: &Args) -> Result<()> {
    let (pins, shelf) = (Pins::read(root)?, Shelf::open()?);
    let packages = &pins.clients.packages;
    let made_from = packages.join(" ");
    let part = Part { name: "clients", version: "1", made_from: &[&made_from] };
    let folder = shelf.once(&part, "half a minute", |folder| {
        python::environment(&folder.join("venv"), packages).map(drop)
    })?;
    process::run(
        Command::new(folder.join("venv/bin/python"))
            .arg(root.join("cluster/engines/clients.py"))
            .arg(&args.gateway),
    )
}
