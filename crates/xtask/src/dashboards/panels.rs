//! The JSON of a board, from rows of panels.

use serde_json::{Value, json};

/// A row with a title, and its panels from left to right.
pub(super) struct Row {
    pub(super) title: &'static str,
    pub(super) panels: Vec<Panel>,
}

/// One picture.
pub(super) struct Panel {
    pub(super) title: &'static str,
    /// What it shows and when to worry.
    pub(super) about: &'static str,
    pub(super) kind: Kind,
    /// As Grafana names it.
    pub(super) unit: &'static str,
    /// Of 24.
    pub(super) wide: u32,
    /// A query, and what its lines are called.
    pub(super) lines: Vec<(String, &'static str)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One large number.
    Stat,
    /// Lines over time.
    Lines,
    /// Lines on top of each other.
    Stacked,
}

/// A panel of lines, eight columns wide: three in a row.
pub(super) fn lines(
    title: &'static str,
    about: &'static str,
    unit: &'static str,
    lines: impl IntoIterator<Item = (impl Into<String>, &'static str)>,
) -> Panel {
    let lines = lines.into_iter().map(|(query, name)| (query.into(), name)).collect();
    Panel { title, about, kind: Kind::Lines, unit, wide: 8, lines }
}

/// A panel of one number, four columns wide: six in a row.
pub(super) fn stat(
    title: &'static str,
    about: &'static str,
    unit: &'static str,
    query: impl Into<String>,
) -> Panel {
    let lines = vec![(query.into(), "")];
    Panel { title, about, kind: Kind::Stat, unit, wide: 4, lines }
}

impl Panel {
    pub(super) fn stacked(mut self) -> Self {
        self.kind = Kind::Stacked;
        self
    }

    fn height(&self) -> u32 {
        if self.kind == Kind::Stat { 4 } else { 8 }
    }

    fn json(&self, id: u32, x: u32, y: u32) -> Value {
        let targets: Vec<Value> = self
            .lines
            .iter()
            .zip('A'..='Z')
            .map(|((query, name), letter)| {
                json!({
                    "refId": letter.to_string(), "expr": query, "legendFormat": name,
                    "datasource": datasource(), "instant": self.kind == Kind::Stat,
                    "range": self.kind != Kind::Stat,
                })
            })
            .collect();
        let stacking = if self.kind == Kind::Stacked { "normal" } else { "none" };
        let filled = if self.kind == Kind::Stacked { 30 } else { 0 };
        json!({
            "id": id, "title": self.title, "description": self.about,
            "type": if self.kind == Kind::Stat { "stat" } else { "timeseries" },
            "datasource": datasource(),
            "gridPos": {"h": self.height(), "w": self.wide, "x": x, "y": y},
            "fieldConfig": {
                "defaults": {
                    "unit": self.unit, "min": 0,
                    "custom": {
                        "fillOpacity": filled, "lineWidth": 1, "showPoints": "never",
                        "spanNulls": false, "stacking": {"mode": stacking, "group": "A"},
                    },
                },
                "overrides": [],
            },
            "options": {
                "tooltip": {"mode": "multi", "sort": "desc"},
                "legend": {"displayMode": "list", "placement": "bottom", "showLegend": true},
            },
            "targets": targets,
        })
    }
}

/// The panels of all rows, with their places.
pub(super) fn placed(rows: &[Row]) -> Vec<Value> {
    let mut all = Vec::new();
    let (mut id, mut y) = (0, 0);
    let mut next = || {
        id += 1;
        id
    };
    for row in rows {
        let place = json!({"h": 1, "w": 24, "x": 0, "y": y});
        all.push(json!({
            "id": next(), "type": "row", "title": row.title, "collapsed": false,
            "gridPos": place, "panels": [],
        }));
        y += 1;
        let (mut x, mut highest) = (0, 0);
        for panel in &row.panels {
            if x + panel.wide > 24 {
                (x, y, highest) = (0, y + highest, 0);
            }
            all.push(panel.json(next(), x, y));
            x += panel.wide;
            highest = highest.max(panel.height());
        }
        y += highest;
    }
    all
}

pub(super) fn datasource() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}
