//! A table's columns in the words of Delta.

use super::action::{Format, MetaData};
use crate::files::MONEY_DIGITS;
use flyball_resources::usage::{
    CHARGE_PERIOD_END, CHARGE_PERIOD_START, ESTIMATED, LedgerTable, MeasureUnit,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

pub(super) fn meta_data(table: &LedgerTable, now_ms: i64) -> MetaData {
    MetaData {
        id: id(table, now_ms),
        name: Some(table.name.to_owned()),
        format: Format { provider: "parquet".to_owned(), options: BTreeMap::new() },
        schema_string: schema(table).to_string(),
        partition_columns: Vec::new(),
        configuration: BTreeMap::new(),
        created_time: Some(now_ms),
    }
}

fn schema(table: &LedgerTable) -> Value {
    let (digits, places) = MONEY_DIGITS;
    let field = |name: &str, kind: &str, about: &str| {
        let metadata = if about.is_empty() { json!({}) } else { json!({ "comment": about }) };
        json!({ "name": name, "type": kind, "nullable": true, "metadata": metadata })
    };
    let mut fields = vec![
        field(CHARGE_PERIOD_START, "timestamp", "when the row's time begins"),
        field(CHARGE_PERIOD_END, "timestamp", "when the row's time ends"),
    ];
    fields.extend(table.texts.iter().map(|text| field(text.name, "string", text.about)));
    fields.push(field(ESTIMATED, "boolean", "written by who last knew of it, not by who counted"));
    let money = format!("decimal({digits},{places})");
    fields.extend(table.measures.iter().map(|measure| {
        let kind = match measure.unit {
            MeasureUnit::Count => "long",
            MeasureUnit::Money => &money,
        };
        field(measure.name, kind, measure.about)
    }));
    json!({ "type": "struct", "fields": fields })
}

/// In the form of a UUID. Chance is not needed: it only has to differ from tables that stood here before.
fn id(table: &LedgerTable, now_ms: i64) -> String {
    let hash = Sha256::digest(format!("flyball {} {now_ms}", table.name));
    let hex: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let (a, b, c, d, e) = (&hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..]);
    format!("{a}-{b}-8{c}-8{d}-{e}")
}
