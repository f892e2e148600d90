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
    /// A query, and what its lines are called. In a table, what its column is called.
    pub(super) lines: Vec<(String, &'static str)>,
    /// Names of two lines between which the picture is filled: low and high.
    pub(super) band: Option<(&'static str, &'static str)>,
    /// From which number on it is red, or up to which.
    pub(super) alarm: Option<Alarm>,
    /// Whether the axis begins at zero.
    pub(super) from_zero: bool,
}

/// When a number is red.
#[derive(Clone, Copy)]
pub(super) enum Alarm {
    From(f64),
    Below(f64),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One large number.
    Stat,
    /// Lines over time.
    Lines,
    /// Lines on top of each other.
    Stacked,
    /// Bars over time: there, or not there.
    States,
    /// Rows, one for each set of labels.
    Table,
}

/// A panel of lines, eight columns wide: three in a row.
pub(super) fn lines(
    title: &'static str,
    about: &'static str,
    unit: &'static str,
    lines: impl IntoIterator<Item = (impl Into<String>, &'static str)>,
) -> Panel {
    let lines = lines.into_iter().map(|(query, name)| (query.into(), name)).collect();
    Panel { unit, lines, ..Panel::of(Kind::Lines, title, about) }
}

/// A panel of one number, four columns wide: six in a row.
pub(super) fn stat(
    title: &'static str,
    about: &'static str,
    unit: &'static str,
    query: impl Into<String>,
) -> Panel {
    let lines = vec![(query.into(), "")];
    Panel { unit, wide: 4, lines, ..Panel::of(Kind::Stat, title, about) }
}

/// A table as wide as the board: the labels of the first query are its first columns, and each query is
/// one more. A query without a name only brings its labels.
pub(super) fn table(
    title: &'static str,
    about: &'static str,
    columns: impl IntoIterator<Item = (String, &'static str)>,
) -> Panel {
    let lines = columns.into_iter().collect();
    Panel { wide: 24, lines, ..Panel::of(Kind::Table, title, about) }
}

impl Panel {
    fn of(kind: Kind, title: &'static str, about: &'static str) -> Self {
        Self {
            title,
            about,
            kind,
            unit: "short",
            wide: 8,
            lines: Vec::new(),
            band: None,
            alarm: None,
            from_zero: true,
        }
    }

    /// As bars: there, or not there.
    pub(super) fn in_bars(mut self) -> Self {
        self.kind = Kind::States;
        self
    }

    /// The axis shows what there is, and not all from zero.
    pub(super) fn zoomed(mut self) -> Self {
        self.from_zero = false;
        self
    }

    /// Red under these circumstances.
    pub(super) fn red(mut self, alarm: Alarm) -> Self {
        self.alarm = Some(alarm);
        self
    }

    pub(super) fn stacked(mut self) -> Self {
        self.kind = Kind::Stacked;
        self
    }

    /// Fills the picture between two of its lines.
    pub(super) fn filled(mut self, low: &'static str, high: &'static str) -> Self {
        self.band = Some((low, high));
        self
    }

    /// So many of 24 columns wide.
    pub(super) fn wide(mut self, columns: u32) -> Self {
        self.wide = columns;
        self
    }

    fn height(&self) -> u32 {
        match self.kind {
            Kind::Stat => 4,
            Kind::Lines | Kind::Stacked | Kind::States => 8,
            Kind::Table => 10,
        }
    }

    fn targets(&self) -> Vec<Value> {
        let at_once = matches!(self.kind, Kind::Stat | Kind::Table);
        let target = |((query, name), letter): (&(String, &'static str), char)| {
            let mut target = json!({
                "refId": letter.to_string(), "expr": query, "legendFormat": name,
                "datasource": datasource(), "instant": at_once, "range": !at_once,
            });
            if self.kind == Kind::Table {
                target["format"] = json!("table");
            }
            target
        };
        self.lines.iter().zip('A'..='Z').map(target).collect()
    }

    fn json(&self, id: u32, x: u32, y: u32) -> Value {
        let mut panel = self.picture(id, x, y);
        if self.kind == Kind::Table {
            panel["transformations"] = self.one_row_each();
            panel["fieldConfig"]["overrides"] = json!([to_the_model()]);
        }
        if self.kind == Kind::States {
            panel["fieldConfig"]["defaults"]["custom"] = json!({"fillOpacity": 70, "lineWidth": 0});
            panel["options"]["showValue"] = json!("never");
        }
        if !self.from_zero {
            panel["fieldConfig"]["defaults"]["min"] = Value::Null;
        }
        if let Some(alarm) = self.alarm {
            let (first, then, at) = match alarm {
                Alarm::From(at) => ("green", "red", at),
                Alarm::Below(at) => ("red", "green", at),
            };
            let steps = json!([{"color": first, "value": null}, {"color": then, "value": at}]);
            panel["fieldConfig"]["defaults"]["thresholds"] =
                json!({"mode": "absolute", "steps": steps});
            panel["fieldConfig"]["defaults"]["color"] = json!({"mode": "thresholds"});
        }
        if let Some((low, high)) = self.band {
            panel["fieldConfig"]["overrides"] = json!([{
                "matcher": {"id": "byName", "options": high},
                "properties": [
                    {"id": "custom.fillBelowTo", "value": low},
                    {"id": "custom.fillOpacity", "value": 15},
                    {"id": "custom.lineWidth", "value": 0},
                ],
            }]);
        }
        panel
    }

    /// Puts the values of all queries with the same labels into one row, and names the columns.
    fn one_row_each(&self) -> Value {
        let mut hidden = serde_json::Map::from_iter([("Time".to_owned(), json!(true))]);
        let mut names =
            serde_json::Map::from_iter([("target_namespace".to_owned(), json!("namespace"))]);
        for ((_, name), letter) in self.lines.iter().zip('A'..='Z') {
            let column = format!("Value #{letter}");
            if name.is_empty() {
                hidden.insert(column, json!(true));
            } else {
                names.insert(column, json!(name));
            }
        }
        json!([
            {"id": "merge", "options": {}},
            {"id": "organize", "options": {"excludeByName": hidden, "renameByName": names}},
        ])
    }

    fn picture(&self, id: u32, x: u32, y: u32) -> Value {
        let targets = self.targets();
        let stacking = if self.kind == Kind::Stacked { "normal" } else { "none" };
        let filled = if self.kind == Kind::Stacked { 30 } else { 0 };
        json!({
            "id": id, "title": self.title, "description": self.about,
            "type": match self.kind {
                Kind::Stat => "stat",
                Kind::Lines | Kind::Stacked => "timeseries",
                Kind::States => "state-timeline",
                Kind::Table => "table",
            },
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

/// A model's name in a table leads to its own board.
fn to_the_model() -> Value {
    let url = "/d/flyball-model?var-target_namespace=${__data.fields.namespace}&var-model=${__data.fields.model}&${datasource:queryparam}";
    json!({
        "matcher": {"id": "byName", "options": "model"},
        "properties": [{"id": "links", "value": [{"title": "This model", "url": url}]}],
    })
}

pub(super) fn datasource() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}
