//! The models of the settings file and those of ModelServices, together. Pure.
//!
//! A name is served once. The file comes first: whoever runs the gateway wrote it. Between ModelServices the
//! older has a name, as Gateway API resolves such conflicts: a new one cannot take it away.

use super::served::OfferedModel;
use crate::settings::{Arm, GatewaySettingsFile, MAX_MODELS, Split};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What is offered, by `namespace/name` of the ModelService.
pub type OfferedModels = BTreeMap<String, OfferedModel>;

/// What became of the public names of ModelServices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelNames {
    /// Names that are served.
    pub served: usize,
    /// Names that are not served from there, and why.
    pub left_out: Vec<LeftOutName>,
    /// What is not known yet of models that are served.
    pub notes: Vec<String>,
}

/// A name that is not served from a ModelService.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftOutName {
    /// The name.
    pub name: String,
    /// `namespace/name` of the ModelService.
    pub model_service: String,
    /// Why.
    pub why: LeftOutReason,
}

/// Why a name is not served from a ModelService.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftOutReason {
    /// The settings have a model or a split of this name.
    Settings,
    /// This ModelService, which is older, has it.
    Older(String),
    /// It is no name that a gateway can serve.
    Refused,
    /// There are more than a gateway serves.
    Limit,
    /// This version cannot read the ModelService.
    Unreadable,
}

impl LeftOutReason {
    /// The words of all of them in metrics.
    pub const NAMES: [&str; 5] = ["settings", "older", "refused", "limit", "unreadable"];

    /// Its word in metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Settings => Self::NAMES[0],
            Self::Older(_) => Self::NAMES[1],
            Self::Refused => Self::NAMES[2],
            Self::Limit => Self::NAMES[3],
            Self::Unreadable => Self::NAMES[4],
        }
    }
}

impl fmt::Display for LeftOutName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, model_service, .. } = self;
        write!(f, "name {name:?} of ModelService {model_service} is ignored: ")?;
        match &self.why {
            LeftOutReason::Settings => {
                f.write_str("the gateway's settings have it too; hint: remove it there")
            }
            LeftOutReason::Older(other) => {
                write!(
                    f,
                    "ModelService {other} is older and has it; hint: change spec.names of one"
                )
            }
            LeftOutReason::Refused => write!(
                f,
                "it is not a valid name; hint: use printable characters, no quotes, no spaces at \
                 the ends, and at most 256 bytes"
            ),
            LeftOutReason::Limit => {
                write!(f, "this gateway serves {MAX_MODELS} names; hint: spread them over gateways")
            }
            LeftOutReason::Unreadable => f.write_str(
                "this version cannot read it; hint: upgrade the gateway; /config shows what it \
                 cannot read",
            ),
        }
    }
}

/// What the file says with everything that is offered. The first name of a ModelService is the model, with one
/// queue and one set of engines; the others are names for it.
pub fn merge(
    file: &GatewaySettingsFile,
    offered: &OfferedModels,
) -> (GatewaySettingsFile, ModelNames) {
    let mut settings = file.clone();
    let mut names = ModelNames::default();
    let own: BTreeSet<&str> = file
        .models
        .iter()
        .map(|model| model.name.as_str())
        .chain(file.splits.iter().map(|split| split.name.as_str()))
        .collect();
    let mut by_age: Vec<(&String, &OfferedModel)> = offered.iter().collect();
    by_age.sort_by_key(|(key, offer)| (offer.created, *key));
    let mut taken: BTreeMap<&str, &str> = BTreeMap::new();
    for (key, offer) in by_age {
        let mut primary: Option<&str> = None;
        for name in &offer.names {
            let why = match taken.get(name.as_str()) {
                _ if own.contains(name.as_str()) => Some(LeftOutReason::Settings),
                Some(other) => Some(LeftOutReason::Older((*other).to_owned())),
                None if own.len() + taken.len() >= MAX_MODELS => Some(LeftOutReason::Limit),
                None => None,
            };
            if let Some(why) = why {
                names.left_out.push(left_out(name, key, why));
                continue;
            }
            taken.insert(name, key);
            match primary {
                None => {
                    primary = Some(name);
                    let mut model = offer.settings.clone();
                    model.name.clone_from(name);
                    settings.models.push(model);
                }
                Some(model) => settings.splits.push(also(name, model)),
            }
        }
        let refused = offer.refused.iter();
        names.left_out.extend(refused.map(|name| left_out(name, key, LeftOutReason::Refused)));
        if offer.unreadable {
            // Its own name is all that is known of it.
            let name = key.split_once('/').map_or(key.as_str(), |(_, name)| name);
            names.left_out.push(left_out(name, key, LeftOutReason::Unreadable));
        }
        let notes = offer.notes.iter().filter(|_| primary.is_some() || offer.unreadable);
        names.notes.extend(notes.map(|note| format!("ModelService {key}: {note}")));
    }
    names.served = taken.len();
    names.left_out.sort();
    names.notes.extend(armless(&settings));
    (settings, names)
}

impl ModelNames {
    /// How many names are left out, by the words of [`LeftOutReason::NAMES`].
    pub fn left_out_by_reason(&self) -> [usize; 5] {
        LeftOutReason::NAMES
            .map(|word| self.left_out.iter().filter(|left| left.why.name() == word).count())
    }
}

fn left_out(name: &str, key: &str, why: LeftOutReason) -> LeftOutName {
    LeftOutName { name: name.to_owned(), model_service: key.to_owned(), why }
}

/// Another name for a model. What its engines are asked by is the model's own `known_as`.
fn also(name: &str, model: &str) -> Split {
    let arm = Arm { model: model.to_owned(), weight: 1, known_as: None };
    Split { name: name.to_owned(), arms: vec![arm], ..Split::default() }
}

/// Arms of splits for which there is no model at the moment.
fn armless(settings: &GatewaySettingsFile) -> Vec<String> {
    let models: BTreeSet<&str> = settings.models.iter().map(|model| model.name.as_str()).collect();
    let arms = settings.splits.iter().flat_map(|split| {
        let mirror = split.mirror.iter().map(|mirror| &mirror.model);
        split.arms.iter().map(|arm| &arm.model).chain(mirror).map(|model| (&split.name, model))
    });
    arms.filter(|(_, model)| !models.contains(model.as_str()))
        .map(|(split, model)| format!("split {split:?}: model {model:?} does not exist"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{ModelServicePods, ModelSettings};
    use proptest::prelude::*;

    /// A ModelService of this age, which is called `team/key`.
    fn offer(key: &str, second: i64, names: &[&str]) -> (String, OfferedModel) {
        let from = ModelServicePods {
            namespace: "team".to_owned(),
            name: key.to_owned(),
            ..Default::default()
        };
        let offered = OfferedModel {
            created: jiff::Timestamp::from_second(second).unwrap(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            refused: Vec::new(),
            settings: ModelSettings { model_service: Some(from), ..ModelSettings::default() },
            notes: Vec::new(),
            unreadable: false,
        };
        (format!("team/{key}"), offered)
    }

    fn file(models: &[&str]) -> GatewaySettingsFile {
        let model = |name: &&str| ModelSettings {
            name: (*name).to_owned(),
            pool: Some("a/b".to_owned()),
            ..ModelSettings::default()
        };
        GatewaySettingsFile {
            models: models.iter().map(model).collect(),
            ..GatewaySettingsFile::default()
        }
    }

    /// Each name with the ModelService that it is served from.
    fn served(settings: &GatewaySettingsFile) -> Vec<(String, String)> {
        let from = |name: &str| {
            let model = settings.models.iter().find(|model| model.name == name).unwrap();
            model.model_service.as_ref().map_or("file".to_owned(), |from| from.name.clone())
        };
        let models = settings.models.iter().map(|model| (model.name.clone(), from(&model.name)));
        let others =
            settings.splits.iter().map(|split| (split.name.clone(), from(&split.arms[0].model)));
        models.chain(others).collect()
    }

    fn pair(name: &str, from: &str) -> (String, String) {
        (name.to_owned(), from.to_owned())
    }

    #[test]
    fn the_first_name_is_the_model_and_the_others_are_names_for_it() {
        let (settings, names) = merge(&file(&["own"]), &[offer("a", 1, &["x", "y", "z"])].into());
        let expected = [pair("own", "file"), pair("x", "a"), pair("y", "a"), pair("z", "a")];
        assert_eq!(served(&settings), expected);
        assert_eq!((settings.models.len(), settings.splits.len(), names.served), (2, 2, 3));
        assert_eq!(settings.splits[0].arms[0].known_as, None, "that is said once, of the model");
        assert!(names.left_out.is_empty());
    }

    #[test]
    fn the_file_comes_first_and_the_rest_of_the_names_is_served_all_the_same() {
        let mut file = file(&["x"]);
        file.splits.push(also("split", "x"));
        let (settings, names) = merge(&file, &[offer("a", 1, &["x", "split", "y"])].into());
        assert_eq!(settings.models.len(), 2);
        assert_eq!(settings.models[1].name, "y");
        let left_out: Vec<String> = names.left_out.iter().map(ToString::to_string).collect();
        assert_eq!(left_out.len(), 2);
        assert!(
            left_out[1].contains("\"x\" of ModelService team/a")
                && left_out[1].contains("settings"),
            "{left_out:?}"
        );
    }

    #[test]
    fn the_older_has_a_name_and_the_younger_is_reported() {
        let both = [offer("b", 1, &["x", "mine"]), offer("a", 2, &["x"])].into();
        let (settings, names) = merge(&file(&[]), &both);
        assert_eq!(served(&settings), [pair("x", "b"), pair("mine", "b")]);
        let [left] = &names.left_out[..] else { panic!("{names:?}") };
        assert_eq!((left.name.as_str(), left.model_service.as_str()), ("x", "team/a"));
        assert_eq!(left.why, LeftOutReason::Older("team/b".to_owned()));
        assert_eq!(names.left_out_by_reason(), [0, 1, 0, 0, 0]);
        // Of the same second, by name.
        let (settings, _) =
            merge(&file(&[]), &[offer("b", 1, &["x"]), offer("a", 1, &["x"])].into());
        assert_eq!(served(&settings), [pair("x", "a")]);
    }

    #[test]
    fn there_is_a_bound() {
        let many: OfferedModels = (0..MAX_MODELS + 3)
            .map(|n| offer(&format!("m{n:05}"), 1, &[&format!("m{n:05}")]))
            .collect();
        let (settings, names) = merge(&file(&["own"]), &many);
        assert_eq!(settings.models.len(), MAX_MODELS);
        assert_eq!(names.left_out_by_reason(), [0, 0, 0, 4, 0]);
    }

    #[test]
    fn an_arm_without_a_model_is_told_of() {
        let mut file = file(&["x"]);
        file.splits.push(also("chat", "later"));
        let (_, names) = merge(&file, &OfferedModels::default());
        assert_eq!(names.notes, ["split \"chat\": model \"later\" does not exist"]);
        let (_, names) = merge(&file, &[offer("a", 1, &["later"])].into());
        assert!(names.notes.is_empty());
    }

    proptest! {
        /// Whatever is claimed, each name is served once, and every claim is served or told of.
        #[test]
        fn a_name_is_served_once(
            claims in prop::collection::vec((0..4_i64, prop::collection::btree_set("[a-d]", 0..4)), 0..6),
            own in prop::collection::btree_set("[a-d]", 0..2),
        ) {
            let own: Vec<&str> = own.iter().map(String::as_str).collect();
            let offers: OfferedModels = claims
                .iter()
                .enumerate()
                .map(|(n, (second, names))| {
                    let names: Vec<&str> = names.iter().map(String::as_str).collect();
                    offer(&n.to_string(), *second, &names)
                })
                .collect();
            let (settings, names) = merge(&file(&own), &offers);
            let all: Vec<String> = served(&settings).into_iter().map(|(name, _)| name).collect();
            let once: BTreeSet<&String> = all.iter().collect();
            prop_assert_eq!(once.len(), all.len());
            prop_assert_eq!(names.served + own.len(), all.len());
            let claimed: usize = offers.values().map(|offer| offer.names.len()).sum();
            prop_assert_eq!(names.served + names.left_out.len(), claimed);
        }
    }
}
