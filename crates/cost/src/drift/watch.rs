//! One stream of requests, learned and then watched.

use super::detector::{BoundDetector, highest_share};
use super::script::TextScript;

/// What is promised, and what it costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DriftSettings {
    /// Requests to learn from, before anything is judged.
    pub reference: usize,
    /// By how much a share may move without being a change.
    pub margin: f64,
    /// On average at least so many requests lie between two false alarms.
    pub mean_requests: f64,
}

impl DriftSettings {
    /// With one request a second looked at, at most one false alarm in 16 weeks; a length that doubles or halves is found
    /// within 2,000 requests.
    pub const USUAL: Self = Self { reference: 2_000, margin: 0.05, mean_requests: 1e7 };

    const fn is_usable(&self) -> bool {
        self.reference > 0 && self.margin >= 0.0 && self.mean_requests > 1.0
    }
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FinishKind {
    Stop,
    Length,
    Tools,
    Filtered,
    /// It failed, or was cancelled.
    Error,
}

impl FinishKind {
    pub const ALL: [Self; 5] = [Self::Stop, Self::Length, Self::Tools, Self::Filtered, Self::Error];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Tools => "tools",
            Self::Filtered => "filtered",
            Self::Error => "error",
        }
    }
}

/// What the gateway sees of a request without keeping it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedRequest {
    pub prompt: u32,
    pub output: u32,
    pub finish: FinishKind,
    pub script: TextScript,
}

/// Something that a request has or has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriftFeature {
    PromptAbove(u32),
    /// At most so many tokens.
    PromptWithin(u32),
    OutputAbove(u32),
    OutputWithin(u32),
    Finish(FinishKind),
    Script(TextScript),
}

impl DriftFeature {
    fn is_of(self, request: &ObservedRequest) -> bool {
        match self {
            Self::PromptAbove(tokens) => request.prompt > tokens,
            Self::PromptWithin(tokens) => request.prompt <= tokens,
            Self::OutputAbove(tokens) => request.output > tokens,
            Self::OutputWithin(tokens) => request.output <= tokens,
            Self::Finish(kind) => request.finish == kind,
            Self::Script(script) => request.script == script,
        }
    }
}

/// A change that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// What has become more frequent; of several, the one with the most evidence.
    pub feature: DriftFeature,
    /// The most that its share could have been before, with the margin.
    pub bound: f64,
    /// Its share among the last requests, some hundreds.
    pub recent: f64,
    /// Requests since learning ended.
    pub after: u64,
}

/// The test of one model and tenant: 32 kB while it learns, 2 kB from then on. Whoever has many bounds their number.
#[derive(Clone, Debug)]
pub struct DriftWatch {
    settings: DriftSettings,
    state: WatchState,
}

#[derive(Clone, Debug)]
enum WatchState {
    Learning(Vec<ObservedRequest>),
    Watching { detectors: Vec<(DriftFeature, BoundDetector)>, seen: u64 },
}

/// Where lengths are cut, as parts of the reference.
const CUTS: [f64; 3] = [0.25, 0.5, 0.75];
/// Chance that the share of a feature is beyond what was learned: with some thirty features, at most one reference in 300
/// is off in any of them.
const REFERENCE_ERROR: f64 = 1e-4;
/// A share near one cannot rise; its opposite is watched.
const HIGHEST: f64 = 0.98;

impl DriftWatch {
    /// A watch that begins to learn; with settings that promise nothing, the usual ones.
    pub const fn new(settings: DriftSettings) -> Self {
        let settings = if settings.is_usable() { settings } else { DriftSettings::USUAL };
        Self { settings, state: WatchState::Learning(Vec::new()) }
    }

    pub const fn is_learning(&self) -> bool {
        matches!(self.state, WatchState::Learning(_))
    }

    /// Takes the next request. After a change it learns anew what is usual now.
    pub fn observe(&mut self, request: ObservedRequest) -> Option<Drift> {
        match &mut self.state {
            WatchState::Learning(reference) => {
                reference.push(request);
                if reference.len() >= self.settings.reference {
                    let detectors = detectors(reference, self.settings.margin);
                    self.state = WatchState::Watching { detectors, seen: 0 };
                }
                None
            }
            WatchState::Watching { detectors, seen } => {
                *seen += 1;
                let mut sum = 0.0;
                for (feature, detector) in detectors.iter_mut() {
                    detector.observe(feature.is_of(&request));
                    sum += detector.value();
                }
                if sum / (detectors.len() as f64) < self.settings.mean_requests {
                    return None;
                }
                let most =
                    detectors.iter().max_by(|(_, a), (_, b)| a.value().total_cmp(&b.value()))?;
                let (feature, detector) = most;
                let drift = Drift {
                    feature: *feature,
                    bound: detector.bound(),
                    recent: detector.recent(),
                    after: *seen,
                };
                self.state = WatchState::Learning(Vec::new());
                Some(drift)
            }
        }
    }
}

fn detectors(reference: &[ObservedRequest], margin: f64) -> Vec<(DriftFeature, BoundDetector)> {
    let mut features = Vec::new();
    let mut lengths = |length: fn(&ObservedRequest) -> u32,
                       above: fn(u32) -> DriftFeature,
                       within: fn(u32) -> DriftFeature| {
        let mut sorted: Vec<u32> = reference.iter().map(length).collect();
        sorted.sort_unstable();
        for cut in CUTS {
            let at = sorted[(cut * sorted.len() as f64) as usize];
            features.extend([above(at), within(at)]);
        }
    };
    lengths(|one| one.prompt, DriftFeature::PromptAbove, DriftFeature::PromptWithin);
    lengths(|one| one.output, DriftFeature::OutputAbove, DriftFeature::OutputWithin);
    features.extend(FinishKind::ALL.map(DriftFeature::Finish));
    features.extend(TextScript::ALL.map(DriftFeature::Script));
    let detector = |feature: DriftFeature| {
        let hits = reference.iter().filter(|request| feature.is_of(request)).count();
        let bound = highest_share(hits, reference.len(), REFERENCE_ERROR) + margin;
        let share = hits as f64 / reference.len() as f64;
        (bound < HIGHEST).then(|| (feature, BoundDetector::new(bound, share)))
    };
    features.into_iter().filter_map(detector).collect()
}
