//! A write of something that is ours, as an event of the API server has it.
//!
//! What an object holds is read only of resources of our group. Of Secrets the metadata is, and of that one annotation.

use flyball_resources::GROUP;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

/// By which `flyball key` is known where it writes a Secret.
const FIELD_MANAGER: &str = "fieldManager=flyball-cli";

/// A request that was to change something, and what came of it.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) time: Timestamp,
    pub(super) user: String,
    pub(super) acting_as: Option<String>,
    pub(super) verb: Verb,
    pub(super) target: Target,
    pub(super) subresource: String,
    /// None if it is not known.
    pub(super) code: Option<i64>,
    pub(super) panicked: bool,
    pub(super) dry_run: bool,
    /// Whether `flyball` says that it wrote it.
    by_us: bool,
    /// The object, or the patch, that was sent; null if the log has none.
    pub(super) request: Value,
    /// The object as it is stored; null if the log has none.
    pub(super) response: Value,
    pub(super) secret: Option<Secret>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Create,
    Update,
    Patch,
    Delete,
    DeleteMany,
}

/// On what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Target {
    pub(super) resource: String,
    pub(super) namespace: String,
    /// Empty for many at once.
    pub(super) name: String,
}

/// What is known of a Secret without looking inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Secret {
    /// Whether `flyball key` wrote it.
    pub(super) by_us: bool,
    /// Whose key it has, by its annotation.
    pub(super) tenant: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    stage: Option<String>,
    #[serde(rename = "requestURI")]
    request_uri: Option<String>,
    verb: Option<String>,
    user: Option<User>,
    impersonated_user: Option<User>,
    object_ref: Option<ObjectRef>,
    response_status: Option<Status>,
    request_received_timestamp: Option<String>,
    stage_timestamp: Option<String>,
}

#[derive(Deserialize)]
struct User {
    username: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    resource: String,
    namespace: String,
    name: String,
    api_group: String,
    subresource: String,
}

#[derive(Deserialize)]
struct Status {
    code: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bodies {
    #[serde(default)]
    request_object: Value,
    #[serde(default)]
    response_object: Value,
}

/// As much of a Secret as may be known.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SecretBodies {
    request_object: Option<Annotated>,
    response_object: Option<Annotated>,
}

#[derive(Deserialize)]
struct Annotated {
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
struct Metadata {
    annotations: Option<Annotations>,
}

#[derive(Deserialize)]
struct Annotations {
    #[serde(rename = "flyball.dev/tenant")]
    tenant: Option<String>,
}

/// Reads an event; nothing if it is about something else, or if another event of the same request tells it better. An
/// error says what is wrong with it.
pub(super) fn read(line: &[u8]) -> Result<Option<Write>, &'static str> {
    let event: Event = serde_json::from_slice(line).map_err(|_| "has a field of another type")?;
    let (Some(of), Some(verb)) = (&event.object_ref, event.verb.as_deref().and_then(verb)) else {
        return Ok(None);
    };
    let is_secret = of.api_group.is_empty() && of.resource == "secrets";
    let is_ours = of.api_group == GROUP && of.subresource != "status";
    if !is_ours && !is_secret {
        return Ok(None);
    }
    let panicked = match event.stage.as_deref() {
        Some("ResponseComplete") => false,
        Some("Panic") => true,
        Some(_) => return Ok(None),
        None => return Err("has no stage"),
    };
    let times = [&event.stage_timestamp, &event.request_received_timestamp];
    let time = times.into_iter().flatten().find_map(|text| text.parse().ok());
    let time = time.ok_or("has no time")?;
    let mut write = Write::of(event, verb, time, panicked);
    if is_secret {
        write.secret = Some(of_secret(line, &write));
    } else {
        let bodies: Bodies =
            serde_json::from_slice(line).map_err(|_| "has an object that cannot be read")?;
        write.take(bodies);
    }
    Ok(Some(write))
}

impl Write {
    fn of(event: Event, verb: Verb, time: Timestamp, panicked: bool) -> Self {
        let of = event.object_ref.unwrap_or_default();
        let name = |user: Option<User>| user.and_then(|user| user.username);
        let uri = event.request_uri.unwrap_or_default();
        let query = uri.split_once('?').map_or("", |(_, query)| query);
        let has = |is_set: &dyn Fn(&str) -> bool| query.split('&').any(is_set);
        Self {
            time,
            user: name(event.user).unwrap_or_default(),
            acting_as: name(event.impersonated_user),
            verb,
            target: Target { resource: of.resource, namespace: of.namespace, name: of.name },
            subresource: of.subresource,
            code: event.response_status.and_then(|status| status.code),
            panicked,
            dry_run: has(&|part| part.starts_with("dryRun=") && part != "dryRun="),
            by_us: has(&|part| part == FIELD_MANAGER),
            request: Value::Null,
            response: Value::Null,
            secret: None,
        }
    }

    fn take(&mut self, bodies: Bodies) {
        (self.request, self.response) = (bodies.request_object, bodies.response_object);
        // The options of a deletion may stand in its body.
        let options = self.request["dryRun"].as_array().is_some_and(|all| !all.is_empty());
        self.dry_run |= options && matches!(self.verb, Verb::Delete | Verb::DeleteMany);
        // A new object may have got its name from the server.
        if let (Verb::Create, "", Some(name)) =
            (self.verb, self.target.name.as_str(), self.response["metadata"]["name"].as_str())
        {
            self.target.name = name.to_owned();
        }
    }

    /// Whether something may be stored now that was not before.
    pub(super) fn took_effect(&self) -> bool {
        !self.dry_run && self.was_accepted()
    }

    pub(super) fn was_accepted(&self) -> bool {
        !self.panicked && self.code.is_some_and(|code| (200..300).contains(&code))
    }
}

/// What is known of a Secret. What has another form than an object, such as a list of changes, says nothing of it.
fn of_secret(line: &[u8], write: &Write) -> Secret {
    let bodies = serde_json::from_slice::<SecretBodies>(line).ok();
    let tenant = |object: Option<Annotated>| object?.metadata?.annotations?.tenant;
    let tenant = bodies.and_then(|one| tenant(one.response_object).or(tenant(one.request_object)));
    Secret { by_us: write.by_us, tenant }
}

fn verb(word: &str) -> Option<Verb> {
    Some(match word {
        "create" => Verb::Create,
        "update" => Verb::Update,
        "patch" => Verb::Patch,
        "delete" => Verb::Delete,
        "deletecollection" => Verb::DeleteMany,
        _ => return None,
    })
}
