//! The schema of the values: closed everywhere, and with every setting of the gateway in it.
//!
//! That part is written from the reference of the settings, which a test of `flyball-gateway` writes
//! from the code.

use super::Desk;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const SCHEMA: &str = "charts/flyball/values.schema.json";
const REFERENCE: &str = "docs/reference/gateway-settings.md";
const TOP: &str = "At the top";

/// Returns how many settings were found.
pub(super) fn hold(desk: &mut Desk) -> usize {
    let sections = sections(&desk.read(REFERENCE));
    let mut schema: Value = serde_json::from_str(&desk.read(SCHEMA)).unwrap();
    match object(TOP, &sections) {
        Ok(settings) => schema["$defs"]["gatewaySettings"] = settings,
        Err(why) => desk.wrong(format!("{REFERENCE}: {why}")),
    }
    closed(desk, SCHEMA, &schema);
    desk.current(SCHEMA, &format!("{schema:#}\n"));
    let crds = "charts/flyball-crds/values.schema.json";
    let schema = serde_json::from_str(&desk.read(crds)).unwrap();
    closed(desk, crds, &schema);
    sections.values().map(Vec::len).sum()
}

fn closed(desk: &mut Desk, file: &str, schema: &Value) {
    let mut open = Vec::new();
    doors("", schema, &mut open);
    for place in open {
        desk.wrong(format!("{file}: {place} takes keys that nobody knows"));
    }
}

/// Objects that take any key, but for forms of Kubernetes, which the API server checks.
fn doors(place: &str, schema: &Value, open: &mut Vec<String>) {
    let Some(fields) = schema.as_object() else { return };
    let is_object = fields.get("type").is_some_and(|kind| kind == "object");
    let is_kubernetes = fields.get("$comment").is_some_and(|c| c == "open: a form of Kubernetes");
    let others = fields.get("additionalProperties");
    let is_closed = match (fields.contains_key("properties"), others) {
        (_, Some(Value::Bool(false))) => true,
        // A map: any key, and values of one form.
        (false, Some(Value::Object(_))) => true,
        _ => is_kubernetes,
    };
    if is_object && !is_closed {
        open.push(format!("`{place}`"));
    }
    for (name, field) in fields {
        let into = ["properties", "$defs"].contains(&name.as_str());
        if into {
            for (name, field) in field.as_object().into_iter().flatten() {
                doors(&format!("{place}/{name}"), field, open);
            }
        } else if ["items", "additionalProperties"].contains(&name.as_str()) {
            doors(&format!("{place}/*"), field, open);
        }
    }
}

/// One setting of the reference.
#[derive(Debug, PartialEq)]
struct Setting {
    name: String,
    takes: String,
    required: bool,
    what: String,
}

/// Headings and rows such as: | `name` | what it takes | default | what it is |.
fn sections(text: &str) -> BTreeMap<String, Vec<Setting>> {
    let mut found: BTreeMap<String, Vec<Setting>> = BTreeMap::new();
    let mut title = String::new();
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            title = heading_of(heading);
        }
        // What it is may have the sign in it; what it takes has not.
        let cells: Vec<&str> = line.splitn(5, '|').map(str::trim).collect();
        let ["", name, takes, default, what] = cells[..] else { continue };
        let Some(name) = name.strip_prefix('`').and_then(|name| name.strip_suffix('`')) else {
            continue;
        };
        found.entry(title.clone()).or_default().push(Setting {
            name: name.to_owned(),
            takes: takes.to_owned(),
            required: default == "required",
            what: what.trim_end_matches('|').trim().to_owned(),
        });
    }
    found
}

/// `[limits]` of "`[limits]`, in bytes"; other headings as they are.
fn heading_of(text: &str) -> String {
    text.split('`').nth(1).unwrap_or(text).to_owned()
}

fn object(title: &str, sections: &BTreeMap<String, Vec<Setting>>) -> Result<Value, String> {
    let settings = sections.get(title).ok_or_else(|| format!("there is no section {title}"))?;
    let mut properties = Map::new();
    for setting in settings {
        let mut schema = form(&setting.takes, sections)
            .map_err(|why| format!("`{}` of {title}: {why}", setting.name))?;
        schema["description"] = setting.what.clone().into();
        properties.insert(setting.name.clone(), schema);
    }
    let required: Vec<&str> =
        settings.iter().filter(|s| s.required).map(|s| s.name.as_str()).collect();
    let mut object = json!({
        "type": "object", "additionalProperties": false, "properties": properties,
    });
    if !required.is_empty() {
        object["required"] = required.into();
    }
    Ok(object)
}

fn form(takes: &str, sections: &BTreeMap<String, Vec<Setting>>) -> Result<Value, String> {
    let not_understood = || Err(format!("takes {takes}, which is not understood"));
    let text = |pattern: &str| json!({"type": "string", "pattern": pattern});
    if let Some(section) = takes.strip_prefix("sections ") {
        let most = section.split_once("at most ").and_then(|(_, most)| most.parse::<u64>().ok());
        let Some(most) = most else { return not_understood() };
        let items = object(&heading_of(section), sections)?;
        return Ok(json!({"type": "array", "maxItems": most, "items": items}));
    }
    if let Some(section) = takes.strip_prefix("section ") {
        return object(&heading_of(section), sections);
    }
    if let Some(of) = takes.strip_prefix("list of ") {
        return Ok(json!({"type": "array", "items": form(of, sections)?}));
    }
    if let Some((least, most)) = takes.split_once(" to ") {
        if let (Ok(least), Ok(most)) = (least.parse::<u64>(), most.parse::<u64>()) {
            return Ok(json!({"type": "integer", "minimum": least, "maximum": most}));
        }
        let most = most.strip_suffix(" printable bytes").and_then(|most| most.parse::<u64>().ok());
        return match (least, most) {
            ("text of 1", Some(most)) => {
                Ok(json!({"type": "string", "minLength": 1, "maxLength": most}))
            }
            _ => not_understood(),
        };
    }
    Ok(match takes {
        "`true` or `false`" => json!({"type": "boolean"}),
        "`IP:PORT`" => text("^[0-9a-fA-F.:\\[\\]]+:[0-9]{1,5}$"),
        "`namespace/name:port`" => text("^[-a-z0-9]+/[-a-z0-9.]+:[-a-z0-9]+$"),
        "`namespace/name`" => text("^[-a-z0-9]+/[-a-z0-9.]+$"),
        // Some take https too; which, the program says.
        "`http://HOST:PORT`" => text("^https?://.+$"),
        "64 hexadecimal digits" => text("^[0-9a-fA-F]{64}$"),
        "path of a file" => json!({"type": "string", "minLength": 1}),
        "names of namespaces" => text("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
        "name of a header, in lower case" => text("^[^A-Z\\s:]+$"),
        words if words.starts_with('`') => {
            let words: Vec<&str> = words.split(", ").map(|word| word.trim_matches('`')).collect();
            if !words
                .iter()
                .all(|word| word.chars().all(|c| c.is_ascii_lowercase() || "-_".contains(c)))
            {
                return not_understood();
            }
            json!({ "enum": words })
        }
        _ => return not_understood(),
    })
}

const PAGE: &str = "# Settings\n\n## At the top\n\n\
    | Setting | Takes | Default | What it is |\n|---|---|---|---|\n\
    | `threads` | 0 to 8 | `0` | Threads. |\n\
    | `keys` | sections `[[keys]]`, at most 20 |  | Keys. |\n\n\
    ## `[[keys]]`\n\n| Setting | Takes | Default | What it is |\n|---|---|---|---|\n\
    | `sha256` | 64 hexadecimal digits | required | As `a | sha256sum` says. |\n\
    | `priority` | `high`, `low` | `high` | Who waits. |\n";

#[test]
fn settings_become_a_closed_schema() {
    let schema = object(TOP, &sections(PAGE)).unwrap();
    assert_eq!(schema["properties"]["threads"]["maximum"], 8);
    let keys = &schema["properties"]["keys"];
    assert_eq!(keys["maxItems"], 20);
    assert_eq!(keys["items"]["required"], json!(["sha256"]));
    assert_eq!(keys["items"]["properties"]["priority"]["enum"], json!(["high", "low"]));
    let what = &keys["items"]["properties"]["sha256"]["description"];
    assert_eq!(what, "As `a | sha256sum` says.");
    let mut open = Vec::new();
    doors("", &schema, &mut open);
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_setting_of_an_unknown_form_is_told_of() {
    let page = PAGE.replace("0 to 8", "a moon");
    let text = object(TOP, &sections(&page)).unwrap_err();
    assert!(text.contains("`threads`") && text.contains("a moon"), "{text}");
}

#[test]
fn an_open_object_is_found() {
    let schema = json!({"type": "object", "additionalProperties": false, "properties": {
        "a": {"type": "object"},
        "b": {"type": "object", "additionalProperties": {"type": "string"}},
        "c": {"type": "array", "items": {"type": "object", "properties": {}}},
        "d": {"type": "object", "$comment": "open: a form of Kubernetes"},
    }});
    let mut open = Vec::new();
    doors("", &schema, &mut open);
    assert_eq!(open, ["`/a`", "`/c/*`"]);
}
