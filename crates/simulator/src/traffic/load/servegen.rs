//! `ServeGen`'s rates: one file per client, `chunk-N-trace.csv`, in a folder per model.
//!
//! Rows have no header: start of the window in seconds, requests per second, coefficient of
//! variation of their distances, and a fitted distribution (family, shape, scale) that is not
//! used, because the first three say as much as a replay needs.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use super::{Form, LoadError, LoadTally, Loaded, LoadedPart, Traffic};
use crate::seconds::Seconds;
use crate::traffic::{TrafficRates, TrafficWindow};

const HINT: &str = "rows look like: 600,0.93,0.76,Gamma,1.33,1.16 (start of the window in seconds, \
                    requests per second, variation)";

/// Whether the text begins like such a file: no header, six cells, a number first.
pub(super) fn is_chunk(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    let mut cells = first.split(',');
    cells.next().is_some_and(|cell| cell.trim().parse::<f64>().is_ok()) && cells.count() == 5
}

/// One file: one client.
pub(super) fn chunk(file: &str, text: &str) -> Result<Loaded, LoadError> {
    let mut models = Models::new(file);
    models.client("", 0, file, text);
    models.finish()
}

/// A tar file of them.
pub(super) fn archive(file: &str, bytes: &[u8]) -> Result<Loaded, LoadError> {
    let broken = |error: std::io::Error| {
        LoadError::new(file, format!("the tar file is broken: {error}"))
            .hint("copy or download it again; tar -t checks it")
    };
    let mut models = Models::new(file);
    let mut text = String::new();
    for entry in tar::Archive::new(bytes).entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let path = entry.path().map_err(broken)?.to_string_lossy().into_owned();
        let Some((model, number)) = named(&path) else { continue };
        text.clear();
        entry.read_to_string(&mut text).map_err(broken)?;
        models.client(&model, number, &path, &text);
    }
    models.finish()
}

/// A folder of them, with folders inside.
pub(super) fn folder(file: &str, root: &Path) -> Result<Loaded, LoadError> {
    let mut models = Models::new(file);
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let refused = |error: std::io::Error| {
            LoadError::new(&folder.display().to_string(), format!("cannot be read: {error}"))
                .hint("give a folder that you may read")
        };
        for entry in std::fs::read_dir(&folder).map_err(refused)? {
            let path = entry.map_err(refused)?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let inside = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            let Some((model, number)) = named(&inside) else { continue };
            let text = std::fs::read_to_string(&path).map_err(refused)?;
            models.client(&model, number, &inside, &text);
        }
    }
    models.finish()
}

/// `./language/m-large/chunk-7-trace.csv`: the model and the number of the client.
fn named(path: &str) -> Option<(String, u64)> {
    let path = path.trim_start_matches("./");
    let (model, file) = path.rsplit_once('/').unwrap_or(("", path));
    let number = file.strip_prefix("chunk-")?.strip_suffix("-trace.csv")?;
    Some((model.to_owned(), number.parse().ok()?))
}

struct Models {
    tally: LoadTally,
    /// By model and number of the client: start of the window and what is in it.
    clients: BTreeMap<String, BTreeMap<u64, Vec<(f64, TrafficWindow)>>>,
}

impl Models {
    fn new(file: &str) -> Self {
        Self { tally: LoadTally::of(file), clients: BTreeMap::new() }
    }

    fn client(&mut self, model: &str, number: u64, file: &str, text: &str) {
        let mut windows = Vec::with_capacity(text.len() / 32);
        for (line, row) in text.lines().enumerate().filter(|(_, row)| !row.is_empty()) {
            match window(row) {
                Some(window) => windows.push(window),
                None => self.tally.unread(line as u64 + 1, &format!("{file}: {row:?}")),
            }
        }
        self.tally.read += windows.len();
        self.clients.entry(model.to_owned()).or_default().insert(number, windows);
    }

    fn finish(self) -> Result<Loaded, LoadError> {
        let Self { tally, clients } = self;
        if clients.is_empty() {
            let what = "no files named chunk-N-trace.csv in it";
            return Err(LoadError::new(&tally.file, what).hint("ServeGen's data folder has them"));
        }
        tally.check(HINT)?;
        let mut parts = Vec::with_capacity(clients.len());
        for (model, clients) in clients {
            let rates = rates(&tally.file, clients.into_values().collect())?;
            let model = Some(model).filter(|name| !name.is_empty());
            parts.push(LoadedPart { model, traffic: Traffic::Rates(rates), lengths: None });
        }
        Ok(Loaded { form: Form::ServeGen, start: None, parts, tally })
    }
}

fn window(row: &str) -> Option<(f64, TrafficWindow)> {
    let mut cells = row.split(',');
    let mut number = || cells.next()?.trim().parse::<f64>().ok().filter(|n| n.is_finite());
    let (start, rate, variation) = (number()?, number()?, number()?);
    (start >= 0.0 && rate >= 0.0).then_some((start, TrafficWindow { rate, variation }))
}

/// All clients over the same windows. A window that no client lists is a gap; one that others
/// list and this client does not is a quiet one of this client.
fn rates(file: &str, clients: Vec<Vec<(f64, TrafficWindow)>>) -> Result<TrafficRates, LoadError> {
    let longest = clients.iter().max_by_key(|windows| windows.len());
    let length = longest.and_then(|windows| {
        let apart = windows.windows(2).map(|pair| pair[1].0 - pair[0].0);
        apart.filter(|length| *length > 0.0).min_by(f64::total_cmp)
    });
    let length = length.ok_or_else(|| {
        LoadError::new(file, "one window is not enough to know how long a window is").hint(HINT)
    })?;
    let place = |start: f64| (start / length).round() as usize;
    let count = clients.iter().flatten().map(|(start, _)| place(*start) + 1).max().unwrap_or(0);
    let mut listed = vec![false; count];
    let series = clients.into_iter().map(|windows| {
        let mut series = vec![TrafficWindow::default(); count];
        for (start, window) in windows {
            listed[place(start)] = true;
            series[place(start)] = window;
        }
        series
    });
    let clients = series.collect();
    let gaps = crate::traffic::gaps::runs(listed.iter().map(|listed| !listed));
    Ok(TrafficRates { window: Seconds(length), clients, gaps })
}
