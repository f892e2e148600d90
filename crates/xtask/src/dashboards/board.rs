//! A board: what can be chosen on it, and its rows.

use super::panels::{Row, datasource, placed};
use serde_json::{Value, json};

/// A whole board.
pub(super) struct Board {
    /// The name of its file.
    pub(super) file: &'static str,
    pub(super) uid: &'static str,
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    pub(super) choices: Vec<Choice>,
    pub(super) rows: Vec<Row>,
}

/// Something that can be chosen at the top of a board: values of a label.
pub(super) struct Choice {
    label: &'static str,
    /// The series that have it.
    of: &'static str,
    /// Whether several can be chosen, and all of them at first.
    several: bool,
}

impl Choice {
    pub(super) const fn several(label: &'static str, of: &'static str) -> Self {
        Self { label, of, several: true }
    }

    pub(super) const fn one(label: &'static str, of: &'static str) -> Self {
        Self { label, of, several: false }
    }

    fn json(&self) -> Value {
        let (name, query) = (self.label, format!("label_values({}, {})", self.of, self.label));
        let mut json = json!({
            "name": name, "label": name, "type": "query", "datasource": datasource(),
            "query": {"query": query, "refId": "A"}, "definition": query,
            "refresh": 2, "includeAll": self.several, "multi": self.several, "sort": 1,
        });
        if self.several {
            json["allValue"] = json!(".*");
            json["current"] = json!({"text": ["All"], "value": ["$__all"]});
        }
        json
    }
}

impl Board {
    pub(super) fn json(&self) -> Value {
        let source = json!({"name": "datasource", "label": "datasource", "type": "datasource", "query": "prometheus"});
        let choices: Vec<Value> =
            [source].into_iter().chain(self.choices.iter().map(Choice::json)).collect();
        json!({
            "uid": self.uid,
            "title": self.title,
            "description": format!("{} Written by cargo xtask dashboards.", self.about),
            "tags": ["flyball"],
            "schemaVersion": 39,
            "version": 1,
            "editable": true,
            "graphTooltip": 1,
            "refresh": "30s",
            "time": {"from": "now-1h", "to": "now"},
            "timezone": "browser",
            "annotations": {"list": []},
            "links": [{"type": "dashboards", "title": "Flyball", "tags": ["flyball"], "asDropdown": true, "keepTime": true, "includeVars": false}],
            "templating": {"list": choices},
            "panels": placed(&self.rows),
        })
    }

    /// Every query with its place.
    pub(super) fn queries(&self) -> Vec<(String, String)> {
        let place = |row: &Row, panel: &str| format!("{}: {} / {panel}", self.file, row.title);
        let of_panels = self.rows.iter().flat_map(|row| {
            row.panels.iter().flat_map(move |panel| {
                panel.lines.iter().map(move |(query, _)| (place(row, panel.title), query.clone()))
            })
        });
        let of_choices = self.choices.iter().map(|choice| {
            let place = format!("{}: choice of {}", self.file, choice.label);
            (place, format!("group by ({}) ({})", choice.label, choice.of))
        });
        of_panels.chain(of_choices).collect()
    }
}
