//! The public models whose shapes come with the program, so that it answers without a download.
//!
//! `shipped` is the list of files. `names` finds a model by what people write: its name here, an id
//! of Hugging Face, one that has the same shape, or any of these with an ending such as `-AWQ`, for
//! which `formats` says how the weights are stored. Start with [`find`].

mod formats;
mod names;
mod shipped;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::architecture::{Architecture, ArchitectureError};
use crate::precision::Dtype;
use formats::Format;

/// A model whose shape comes with the program.
#[derive(Debug)]
pub struct ListedModel {
    pub name: &'static str,
    /// The id under which it is published.
    pub published: String,
    /// Ids of others that have the same shape.
    pub aliases: Vec<String>,
    /// Where the numbers are from.
    pub source: String,
    /// The keys of its `config.json` that matter here.
    pub config: &'static str,
}

/// A model that somebody wrote the name of.
#[derive(Debug)]
pub struct FoundModel {
    pub known: &'static ListedModel,
    /// How an engine is told which model.
    pub reference: String,
    /// What the ending of the name says about the weights.
    ending: Option<Format>,
    /// The name has an organisation, so somebody published exactly this.
    published: bool,
    by_nvidia: bool,
}

impl FoundModel {
    /// Its `config.json`, with the weights stored as the ending of the name says.
    pub fn config(&self) -> Cow<'static, str> {
        match self.ending {
            None => Cow::Borrowed(self.known.config),
            Some(format) => Cow::Owned(format.applied(self.known.config, self.by_nvidia)),
        }
    }

    /// The format that an ending asks for where no organisation says who published it: the engine
    /// has to be told.
    pub fn requantised(&self) -> Option<Dtype> {
        self.ending.map(Format::dtype).filter(|_| !self.published)
    }
}

/// Every shipped model, by name.
pub fn all() -> &'static [ListedModel] {
    &KNOWN
}

/// The names of the shipped models.
pub fn names() -> impl Iterator<Item = &'static str> {
    shipped::SHIPPED.iter().map(|(name, _)| *name)
}

/// The shipped model that somebody means, whatever the case. An organisation in front, endings that
/// do not change the shape (`-Instruct`, `-hf`) and endings that say how the weights are stored
/// (`-FP8`, `-AWQ`) may be there.
pub fn find(written: &str) -> Option<FoundModel> {
    let (organisation, name) = match written.rsplit_once('/') {
        Some((organisation, name)) => (Some(organisation), name),
        None => (None, written),
    };
    let name = name.to_ascii_lowercase();
    let (named, ending) = match names::look_up(&name) {
        Some(named) => (named, None),
        None => {
            let (bare, format) = formats::split(&name)?;
            (names::look_up(bare)?, Some(format))
        }
    };
    let reference = if organisation.is_some() { written } else { named.id };
    Some(FoundModel {
        known: named.known,
        reference: reference.to_owned(),
        ending,
        published: organisation.is_some(),
        by_nvidia: organisation.is_some_and(|name| name.eq_ignore_ascii_case("nvidia")),
    })
}

/// The `config.json` of a shipped model; see [`find`].
pub fn config(written: &str) -> Option<Cow<'static, str>> {
    find(written).map(|found| found.config())
}

/// The shape of a shipped model; see [`find`].
pub fn architecture(written: &str) -> Option<Result<Architecture, ArchitectureError>> {
    config(written).map(|config| Architecture::from_config(&config))
}

/// Names that look like the one that was not found, the likeliest first; at most three models.
pub fn nearest(written: &str) -> Vec<&'static str> {
    names::nearest(written)
}

static KNOWN: LazyLock<Vec<ListedModel>> = LazyLock::new(|| {
    shipped::SHIPPED.iter().filter_map(|(name, config)| known(name, config)).collect()
});

/// What a file says about the model, apart from its shape.
#[derive(Deserialize)]
struct Header {
    #[serde(rename = "_name_or_path")]
    published: String,
    #[serde(rename = "_aliases", default)]
    aliases: Vec<String>,
    #[serde(rename = "_source")]
    source: String,
}

fn known(name: &'static str, config: &'static str) -> Option<ListedModel> {
    // A file without its header is caught by a test.
    let Header { published, aliases, source } = serde_json::from_str(config).ok()?;
    Some(ListedModel { name, published, aliases, source, config })
}
