//! Recorded availability of spot machines: files that say, step by step, how many of a kind a zone had.
//!
//! Two forms are read. JSON as `skypilot-org/spot-traces` publishes it, one file per zone and kind, in a folder or a tar file:
//! `{"metadata": {"gap_seconds": 195}, "data": [0, 1, …]}`, its file called `ZONE_KIND.json` (`us-east-1a_v100_1.json`), its
//! folder ending in the first day (`aws-02-15-2023`). And CSV with the columns `seconds,zone,machines`, one kind a file.
//! Files of one folder and kind are one recording.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use flyball_core::units::{Micros, Timestamp};
use flyball_training::ZoneName;
use serde::Deserialize;

use crate::traffic::load::{LoadError, bytes};

/// What was recorded of one kind of machine in some zones at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpotRecording {
    /// Folder and kind, as in `availability/1-node/aws-02-15-2023 v100_1`.
    pub name: String,
    /// When its first step begins; the epoch where no name says it.
    pub begins: Timestamp,
    /// How long a step is.
    pub step: Micros,
    /// Machines that could be had, by zone and step.
    pub zones: Vec<(ZoneName, Vec<u16>)>,
}

const FORMS_HINT: &str = "give a folder or tar file of spot-traces, one of its files such as us-east-1a_v100_1.json, \
                          or a CSV file with the columns seconds,zone,machines";

/// Reads all recordings below a folder, in a tar file, or in one file; each may be gzipped.
pub fn open(path: &Path) -> Result<Vec<SpotRecording>, LoadError> {
    let shown = path.display().to_string();
    let mut files = Vec::new();
    if path.is_dir() {
        walk(path, path, &mut files)?;
    } else {
        let content = bytes(path)?;
        match content.get(257..262) == Some(b"ustar") {
            true => unpack(&shown, &content, &mut files)?,
            false => files.push((shown.clone(), content)),
        }
    }
    read(&shown, files)
}

/// Makes recordings of files with their names.
fn read(shown: &str, files: Vec<(String, Vec<u8>)>) -> Result<Vec<SpotRecording>, LoadError> {
    let mut all: BTreeMap<String, SpotRecording> = BTreeMap::new();
    for (name, content) in files {
        if name.ends_with(".json") {
            add_json(&mut all, &name, &content)?;
        } else if name.ends_with(".csv") {
            let recording = csv_file(&name, &content)?;
            all.insert(recording.name.clone(), recording);
        }
    }
    if all.is_empty() {
        return Err(LoadError::new(shown, "no recording of spot machines").hint(FORMS_HINT));
    }
    Ok(all.into_values().collect())
}

fn walk(root: &Path, folder: &Path, files: &mut Vec<(String, Vec<u8>)>) -> Result<(), LoadError> {
    let shown = folder.display().to_string();
    let refused =
        |error: std::io::Error| LoadError::new(&shown, format!("cannot be read: {error}"));
    let entries: Result<Vec<_>, _> = std::fs::read_dir(folder).map_err(refused)?.collect();
    let mut paths: Vec<_> = entries.map_err(refused)?.iter().map(std::fs::DirEntry::path).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            walk(root, &path, files)?;
        } else {
            let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            files.push((name, bytes(&path)?));
        }
    }
    Ok(())
}

fn unpack(
    shown: &str,
    content: &[u8],
    files: &mut Vec<(String, Vec<u8>)>,
) -> Result<(), LoadError> {
    let broken = |error: std::io::Error| {
        LoadError::new(shown, format!("the tar file is broken: {error}")).hint("copy it again")
    };
    let mut archive = tar::Archive::new(content);
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let name = entry.path().map_err(broken)?.display().to_string();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(broken)?;
        files.push((name.trim_start_matches("./").to_owned(), bytes));
    }
    files.sort();
    Ok(())
}

#[derive(Deserialize)]
struct TraceFile {
    metadata: TraceMetadata,
    data: Vec<f64>,
}

#[derive(Deserialize)]
struct TraceMetadata {
    gap_seconds: f64,
}

fn add_json(
    all: &mut BTreeMap<String, SpotRecording>,
    name: &str,
    content: &[u8],
) -> Result<(), LoadError> {
    let file: TraceFile = serde_json::from_slice(content).map_err(|error| {
        LoadError::new(name, format!("is not a recording: {error}")).hint(FORMS_HINT)
    })?;
    let step = Micros::new((file.metadata.gap_seconds.max(0.0) * 1e6).round() as u64);
    if step.is_zero() || file.data.is_empty() {
        let what = "has no steps, or steps of no length";
        return Err(LoadError::new(name, what).hint("look at gap_seconds and data"));
    }
    let (folder, stem) = name.rsplit_once('/').unwrap_or(("", name));
    let stem = stem.trim_end_matches(".json");
    let (zone, kind) = stem.split_once('_').unwrap_or((stem, ""));
    let key = format!("{folder} {kind}").trim().to_owned();
    let nodes = file.data.iter().map(|nodes| nodes.clamp(0.0, f64::from(u16::MAX)) as u16);
    let recording = all.entry(key.clone()).or_insert_with(|| SpotRecording {
        name: key,
        begins: first_day(folder).unwrap_or_default(),
        step,
        zones: Vec::new(),
    });
    if recording.step != step {
        let what = format!("has steps of {step}, and others of its folder {}", recording.step);
        return Err(LoadError::new(name, what).hint("put it into a folder of its own"));
    }
    recording.zones.push((ZoneName::new(zone), nodes.collect()));
    Ok(())
}

/// The day that a folder such as `aws-02-15-2023` ends in.
fn first_day(folder: &str) -> Option<Timestamp> {
    let last = folder.rsplit('/').next()?;
    let mut parts = last.rsplit('-');
    let [year, day, month] = [parts.next()?, parts.next()?, parts.next()?];
    let date = jiff::civil::Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?);
    let zoned = date.ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    u64::try_from(zoned.timestamp().as_microsecond()).ok().map(Timestamp::from_micros)
}

#[derive(Deserialize)]
struct CsvRow {
    seconds: f64,
    zone: String,
    machines: u16,
}

fn csv_file(name: &str, content: &[u8]) -> Result<SpotRecording, LoadError> {
    let mut zones: BTreeMap<ZoneName, Vec<(f64, u16)>> = BTreeMap::new();
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(content);
    for (row, line) in reader.deserialize::<CsvRow>().zip(2u64..) {
        let row = row
            .map_err(|error| LoadError::new(name, error.to_string()).line(line).hint(FORMS_HINT))?;
        zones.entry(ZoneName::new(&row.zone)).or_default().push((row.seconds, row.machines));
    }
    let uneven = || {
        LoadError::new(name, "rows of a zone are not at equal steps of time")
            .hint("write one row per zone and step, all zones from the same time on")
    };
    let first = zones.values().next().filter(|rows| rows.len() > 1).ok_or_else(uneven)?;
    let (begins, step) = (first[0].0, first[1].0 - first[0].0);
    let even = |rows: &Vec<(f64, u16)>| {
        let mut expected = (0u32..).map(|index| begins + f64::from(index) * step);
        rows.iter().all(|(at, _)| expected.next().is_some_and(|time| (at - time).abs() < 0.5))
    };
    if step <= 0.0 || begins < 0.0 || !zones.values().all(even) {
        return Err(uneven());
    }
    let nodes = |rows: Vec<(f64, u16)>| rows.into_iter().map(|(_, nodes)| nodes).collect();
    Ok(SpotRecording {
        name: name.trim_end_matches(".csv").to_owned(),
        begins: Timestamp::from_micros((begins * 1e6) as u64),
        step: Micros::new((step * 1e6).round() as u64),
        zones: zones.into_iter().map(|(zone, rows)| (zone, nodes(rows))).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(gap: u32, data: &[u8]) -> Vec<u8> {
        format!("{{\"metadata\": {{\"gap_seconds\": {gap}}}, \"data\": {data:?}}}").into_bytes()
    }

    #[test]
    fn files_of_a_folder_and_a_kind_are_one_recording() {
        let file = |name: &str, data: &[u8]| (format!("a/aws-02-15-2023/{name}"), json(195, data));
        let files = vec![
            file("us-east-1a_v100_1.json", &[0, 1]),
            file("us-east-1b_v100_1.json", &[1, 1]),
            file("us-east-1a_k80_8.json", &[0]),
        ];
        let all = read("x", files).unwrap();
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["a/aws-02-15-2023 k80_8", "a/aws-02-15-2023 v100_1"]);
        assert_eq!(all[1].zones.len(), 2);
        assert_eq!(all[1].zones[0], (ZoneName::new("us-east-1a"), vec![0, 1]));
        // 2023-02-15, 19,403 days after the epoch.
        assert_eq!(all[1].begins.as_millis(), 19_403 * 86_400_000);
        assert_eq!(all[1].step, Micros::from_seconds(195));
    }

    #[test]
    fn a_table_of_ones_own_is_read() {
        let text = "seconds,zone,machines\n0,a,4\n0,b,0\n300,a,3\n300,b,1\n";
        let one = &read("x", vec![("own.csv".to_owned(), text.into())]).unwrap()[0];
        assert_eq!((one.name.as_str(), one.step), ("own", Micros::from_minutes(5)));
        assert_eq!(one.zones[1], (ZoneName::new("b"), vec![0, 1]));
    }

    #[test]
    fn what_is_not_a_recording_says_what_is() {
        let error = |name: &str, content: &[u8]| {
            read("x", vec![(name.to_owned(), content.to_vec())]).unwrap_err()
        };
        assert!(error("a.json", b"{\"a\": 1}").what.starts_with("is not a recording"));
        assert!(error("a_b.json", &json(0, &[1])).what.contains("no length"));
        assert!(error("a.txt", b"").hint.contains("spot-traces"));
        let uneven = error("a.csv", b"seconds,zone,machines\n0,a,1\n300,a,1\n900,a,1\n");
        assert!(uneven.what.contains("equal steps"), "{uneven}");
        assert!(error("a.csv", b"seconds,zone,machines\n0,a,x\n").line == Some(2));
    }
}
