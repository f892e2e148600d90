//! A line of a commit, as Delta's specification names its fields.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

pub(super) const READER: i32 = 1;
pub(super) const WRITER: i32 = 2;

/// One line: exactly one of these.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Line {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) commit_info: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) protocol: Option<Protocol>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) meta_data: Option<MetaData>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) txn: Option<Txn>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) add: Option<Add>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remove: Option<Remove>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Protocol {
    pub(super) min_reader_version: i32,
    pub(super) min_writer_version: i32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MetaData {
    pub(super) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    pub(super) format: Format,
    pub(super) schema_string: String,
    pub(super) partition_columns: Vec<String>,
    #[serde(default)]
    pub(super) configuration: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) created_time: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Format {
    pub(super) provider: String,
    #[serde(default)]
    pub(super) options: BTreeMap<String, String>,
}

/// A source is in the table up to a sequence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Txn {
    pub(super) app_id: String,
    pub(super) version: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last_updated: Option<i64>,
}

/// A file counts from now on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Add {
    pub(super) path: String,
    #[serde(default)]
    pub(super) partition_values: BTreeMap<String, Option<String>>,
    pub(super) size: i64,
    pub(super) modification_time: i64,
    pub(super) data_change: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stats: Option<String>,
    /// Deletion vectors and what else we never write.
    #[serde(flatten)]
    pub(super) others: Map<String, Value>,
}

/// A file does not count any more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Remove {
    pub(super) path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) deletion_timestamp: Option<i64>,
    #[serde(default)]
    pub(super) data_change: bool,
}

impl Line {
    pub(super) fn add(add: Add) -> Self {
        Self { add: Some(add), ..Self::default() }
    }

    pub(super) fn remove(path: &str, now_ms: i64, data_change: bool) -> Self {
        let path = path.to_owned();
        let remove = Remove { path, deletion_timestamp: Some(now_ms), data_change };
        Self { remove: Some(remove), ..Self::default() }
    }

    pub(super) fn txn(app_id: &str, version: i64, now_ms: i64) -> Self {
        let app_id = app_id.to_owned();
        let txn = Txn { app_id, version, last_updated: Some(now_ms) };
        Self { txn: Some(txn), ..Self::default() }
    }

    /// What people see in the history of the table.
    pub(super) fn info(operation: &str, now_ms: i64) -> Self {
        let info = serde_json::json!({
            "timestamp": now_ms,
            "operation": operation,
            "operationParameters": {},
            "engineInfo": "flyball",
        });
        Self { commit_info: Some(info), ..Self::default() }
    }
}

/// A commit as a file of the log.
pub(super) fn write(lines: &[Line]) -> Result<Vec<u8>, serde_json::Error> {
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line)?;
        text.push(b'\n');
    }
    Ok(text)
}

/// A file of the log as a commit.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<Line>, serde_json::Error> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(serde_json::from_slice).collect()
}
