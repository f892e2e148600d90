//! Who said what, and when. Pure: time is an argument.

use flyball_resources::stream::{
    EndpointLoad, Hello, MAX_ENDPOINTS, MAX_MODELS, MAX_NAME, MAX_PAST, ModelDemand, PAST,
    Protocol, PublicName, QuotaExcess, ReportedDemand, ReportedPast, Up,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Without a word for so long, a gateway is gone: it speaks every second.
const GONE: Duration = Duration::from_secs(10);

/// A gateway that never told anything and has not come again for so long is not counted on any more.
/// They come every quarter of a minute.
const NEVER_REPORTED: Duration = Duration::from_mins(10);

/// Gateways at once, silent ones among them.
const GATEWAYS: usize = 1_000;

/// All that gateways said, and who could not say anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportBook {
    /// The last word of each gateway, by name, however old it is.
    pub reports: Vec<GatewayReport>,
    /// Gateways that were refused and never told anything.
    pub refused: BTreeSet<String>,
    /// Whether a silent gateway had to be forgotten for lack of room: since then nobody knows the whole.
    pub crowded: bool,
}

/// The last word of one gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayReport {
    /// Its name: that of its pod.
    pub gateway: String,
    /// The version of its program.
    pub version: String,
    /// What it speaks.
    pub protocol: Protocol,
    /// When it began: its sums count from then.
    pub started: SystemTime,
    /// When it connected last.
    pub since: SystemTime,
    /// When it said anything last.
    pub last_seen: SystemTime,
    /// Whether it has been silent for so long that it must be taken for gone. What it said is old then.
    pub gone: bool,
    /// When it last told how things stand, if it has since it began. If not, all that follows is empty.
    pub reported_at: Option<SystemTime>,
    /// The number of the orders that it goes by; 0 if none of ours reached it.
    pub orders: u64,
    /// Every model that it serves.
    pub models: Arc<[ModelDemand]>,
    /// What changed in the last half minute, the oldest first: models whose sums differ from the moment before.
    pub past: VecDeque<(SystemTime, Arc<[ModelDemand]>)>,
    /// Every engine that it knows.
    pub endpoints: Arc<[EndpointLoad]>,
    /// Models and endpoints that did not fit into its message. If not 0, what is not listed is unknown.
    pub left_out: u32,
}

/// Why a gateway is not heard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    /// It speaks something else.
    #[error(
        "the gateway uses version {0} of this stream and the operator {ours}; hint: run both from \
         releases whose major version is the same",
        ours = Protocol::OURS
    )]
    Protocol(Protocol),
    /// Its name cannot be kept.
    #[error(
        "the gateway's name must have 1 to {MAX_NAME} printable bytes; hint: set HOSTNAME in its pod"
    )]
    Name,
    /// Too many are here.
    #[error("{GATEWAYS} gateways are connected to this operator already; hint: run fewer gateways")]
    TooMany,
    /// It says too much at once.
    #[error("a message may have at most {MAX_MODELS} models and {MAX_ENDPOINTS} endpoints")]
    TooMuch,
    /// The same of quotas.
    #[error(transparent)]
    Quota(#[from] QuotaExcess),
    /// Another connection speaks under its name.
    #[error(
        "another connection uses this gateway's name; hint: give each gateway its own HOSTNAME"
    )]
    Replaced,
}

/// Everything that gateways said.
#[derive(Debug, Default)]
pub(crate) struct Book {
    gateways: BTreeMap<String, Gateway>,
    /// Gateways that were refused and never told anything, and when they came last.
    refused: BTreeMap<String, SystemTime>,
    crowded: bool,
    talks: u64,
}

#[derive(Debug)]
struct Gateway {
    /// The connection that speaks for it.
    talk: u64,
    last: GatewayReport,
    waking: BTreeSet<PublicName>,
}

impl Book {
    /// A gateway says hello on a new connection, which speaks for it from now on. Returns its number.
    pub(crate) fn open(&mut self, hello: &Hello, now: SystemTime) -> Result<u64, Refused> {
        let protocol = hello.protocol.unwrap_or_default();
        if !protocol.is_understood() {
            self.turn_away(&hello.gateway, now);
            return Err(Refused::Protocol(protocol));
        }
        if !is_name(&hello.gateway) {
            return Err(Refused::Name);
        }
        if !self.gateways.contains_key(&hello.gateway)
            && let Err(refused) = self.make_room(now)
        {
            self.turn_away(&hello.gateway, now);
            return Err(refused);
        }
        self.refused.remove(&hello.gateway);
        self.talks += 1;
        let started = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(hello.started_ms));
        let started = started.unwrap_or(SystemTime::UNIX_EPOCH);
        // What it said in this life still holds until it says more.
        let before = self.gateways.remove(&hello.gateway);
        let before = before.filter(|before| before.last.started == started);
        let (last, waking) = match before {
            Some(before) => (before.last, before.waking),
            None => (GatewayReport::silent(hello, started, now), BTreeSet::new()),
        };
        let version = hello.program.chars().take(MAX_NAME).collect();
        let last = GatewayReport {
            version,
            protocol,
            since: now,
            last_seen: now,
            gone: false,
            orders: 0,
            ..last
        };
        let gateway = Gateway { talk: self.talks, last, waking };
        self.gateways.insert(hello.gateway.clone(), gateway);
        Ok(self.talks)
    }

    /// A gateway says something. Whether it waits for other models than before.
    pub(crate) fn receive(
        &mut self,
        name: &str,
        talk: u64,
        up: Up,
        now: SystemTime,
    ) -> Result<bool, Refused> {
        let gateway = self.gateways.get_mut(name).filter(|gateway| gateway.talk == talk);
        let gateway = gateway.ok_or(Refused::Replaced)?;
        let was_gone = is_gone(gateway.last.last_seen, now);
        gateway.last.last_seen = now;
        let mut changed = was_gone && !gateway.waking.is_empty();
        gateway.recall(up.past, now)?;
        if let Some(demand) = up.demand {
            changed |= gateway.take(demand, now)?;
        }
        if let Some(wake) = up.wake
            && wake.model.len().max(wake.namespace.len()) <= MAX_NAME
            && gateway.waking.len() < MAX_MODELS
        {
            changed |= gateway.waking.insert(wake.public_name());
        }
        Ok(changed)
    }

    /// All that was said.
    pub(crate) fn reports(&self, now: SystemTime) -> ReportBook {
        let report = |gateway: &Gateway| {
            let gone = is_gone(gateway.last.last_seen, now);
            GatewayReport { gone, ..gateway.last.clone() }
        };
        ReportBook {
            reports: self.gateways.values().map(report).collect(),
            refused: self.refused.keys().cloned().collect(),
            crowded: self.crowded,
        }
    }

    /// Models that gateways wait for which are here.
    pub(crate) fn waited_for(&self, now: SystemTime) -> BTreeSet<PublicName> {
        let here = self.gateways.values().filter(|gateway| !is_gone(gateway.last.last_seen, now));
        let waited_for: BTreeSet<&PublicName> = here.flat_map(|gateway| &gateway.waking).collect();
        waited_for.into_iter().take(MAX_MODELS).cloned().collect()
    }

    /// Forgets a gateway that does not exist any more. One that has come back meanwhile is kept: silence
    /// alone makes nobody forgotten who once told something.
    pub(crate) fn forget(&mut self, name: &str, now: SystemTime) {
        if self.gateways.get(name).is_some_and(|known| is_gone(known.last.last_seen, now)) {
            self.gateways.remove(name);
        }
        self.refused.remove(name);
    }

    /// Forgets those that never told anything and do not come any more.
    pub(crate) fn sweep(&mut self, now: SystemTime) {
        self.refused.retain(|_, came| passed(*came, now) < NEVER_REPORTED);
        let keep = |last: &GatewayReport| {
            last.reported_at.is_some() || passed(last.last_seen, now) < NEVER_REPORTED
        };
        self.gateways.retain(|_, gateway| keep(&gateway.last));
    }

    /// Remembers that a gateway is there and cannot tell. What one that is known told before stands.
    fn turn_away(&mut self, name: &str, now: SystemTime) {
        let reported =
            self.gateways.get(name).is_some_and(|known| known.last.reported_at.is_some());
        if reported || !is_name(name) {
            return;
        }
        if self.refused.len() < GATEWAYS || self.refused.contains_key(name) {
            self.refused.insert(name.to_owned(), now);
        } else {
            self.crowded = true;
        }
    }

    /// Room for one more: if there is none, whoever has been gone for longest is forgotten.
    fn make_room(&mut self, now: SystemTime) -> Result<(), Refused> {
        if self.gateways.len() < GATEWAYS {
            return Ok(());
        }
        let gone = self.gateways.iter().filter(|(_, g)| is_gone(g.last.last_seen, now));
        let oldest = gone.min_by_key(|(_, gateway)| gateway.last.last_seen);
        let name = oldest.map(|(name, _)| name.clone()).ok_or(Refused::TooMany)?;
        let forgotten = self.gateways.remove(&name);
        self.crowded |= forgotten.is_some_and(|forgotten| forgotten.last.reported_at.is_some());
        Ok(())
    }
}

impl Gateway {
    /// Whether it waits for other models than before.
    fn take(&mut self, demand: ReportedDemand, now: SystemTime) -> Result<bool, Refused> {
        if demand.models.len() > MAX_MODELS || demand.endpoints.len() > MAX_ENDPOINTS {
            return Err(Refused::TooMuch);
        }
        let waking = demand.models.iter().filter(|model| model.waking);
        let waking: BTreeSet<_> = waking.map(ModelDemand::public_name).collect();
        let changed = waking != self.waking;
        self.waking = waking;
        let before = &self.last.models;
        let counted = demand.models.iter().enumerate().filter(|(index, model)| {
            // Gateways list the same models in the same order, second after second.
            let same = before.get(*index).filter(|before| before.model == model.model);
            !same.is_some_and(|before| model.counts_as(before))
        });
        let counted = counted.map(|(_, model)| model.clone()).collect();
        self.remember(now, counted);
        self.last.reported_at = Some(now);
        self.last.orders = demand.orders;
        self.last.left_out = demand.models_left_out.saturating_add(demand.endpoints_left_out);
        self.last.models = demand.models.into();
        self.last.endpoints = demand.endpoints.into();
        Ok(changed)
    }

    /// Takes in how things stood before it talked to this operator.
    fn recall(&mut self, past: Vec<ReportedPast>, now: SystemTime) -> Result<(), Refused> {
        let models: usize = past.iter().map(|moment| moment.models.len()).sum();
        if past.len() > 2 * MAX_PAST || models > 2 * MAX_MODELS {
            return Err(Refused::TooMuch);
        }
        for moment in past {
            let age = Duration::from_millis(moment.age_ms);
            if let Some(at) = now.checked_sub(age).filter(|_| age <= 2 * PAST) {
                self.remember(at, moment.models.into());
            }
        }
        Ok(())
    }

    /// These sums differ from those of the moment before.
    fn remember(&mut self, at: SystemTime, models: Arc<[ModelDemand]>) {
        let past = &mut self.last.past;
        if past.back().is_none_or(|(last, _)| *last < at) {
            past.push_back((at, models));
        }
        while past.front().is_some_and(|(first, _)| passed(*first, at) > PAST)
            || past.len() > MAX_PAST
        {
            past.pop_front();
        }
    }
}

impl GatewayReport {
    /// Of one that has only said hello.
    fn silent(hello: &Hello, started: SystemTime, now: SystemTime) -> Self {
        Self {
            gateway: hello.gateway.clone(),
            version: String::new(),
            protocol: Protocol::OURS,
            started,
            since: now,
            last_seen: now,
            gone: false,
            reported_at: None,
            orders: 0,
            models: Arc::default(),
            past: VecDeque::new(),
            endpoints: Arc::default(),
            left_out: 0,
        }
    }
}

fn is_gone(last_seen: SystemTime, now: SystemTime) -> bool {
    passed(last_seen, now) >= GONE
}

/// A clock that was set back makes nobody old.
fn passed(since: SystemTime, now: SystemTime) -> Duration {
    now.duration_since(since).unwrap_or_default()
}

fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len()) && !name.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_resources::stream::Wake;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + seconds)
    }

    fn hello(gateway: &str, started_ms: u64) -> Hello {
        let (protocol, program) = (Some(Protocol::OURS), "1.2.3".to_owned());
        Hello { protocol, gateway: gateway.to_owned(), program, started_ms }
    }

    fn demand(models: &[(&str, u64, bool)]) -> Up {
        let model = |(model, arrived, waking): &(&str, u64, bool)| ModelDemand {
            model: (*model).to_owned(),
            arrived: *arrived,
            waking: *waking,
            ..ModelDemand::default()
        };
        let models = models.iter().map(model).collect();
        Up {
            demand: Some(ReportedDemand { models, orders: 4, ..ReportedDemand::default() }),
            ..Up::default()
        }
    }

    fn wake(model: &str) -> Up {
        let wake = Wake { model: model.to_owned(), ..Wake::default() };
        Up { wake: Some(wake), ..Up::default() }
    }

    fn names(set: &BTreeSet<PublicName>) -> Vec<&str> {
        set.iter().map(|public| public.name.as_str()).collect()
    }

    #[test]
    fn a_silent_gateway_is_gone_after_ten_seconds_and_kept_until_it_is_known_to_be_no_more() {
        let mut book = Book::default();
        let talk = book.open(&hello("a", 8), at(0)).unwrap();
        assert_eq!(book.reports(at(0)).reports[0].reported_at, None);
        book.receive("a", talk, demand(&[("m", 5, false)]), at(1)).unwrap();
        let report = &book.reports(at(10)).reports[0];
        assert_eq!((report.gone, report.reported_at, report.orders), (false, Some(at(1)), 4));
        assert_eq!((report.models[0].arrived, report.version.as_str()), (5, "1.2.3"));
        // A day later it is as silent, and what it told last is still all that is known of its work.
        for seconds in [11, 601, 86_400] {
            book.sweep(at(seconds));
            let report = &book.reports(at(seconds)).reports[0];
            assert!(report.gone && report.models[0].arrived == 5, "after {seconds} s");
        }
        book.forget("a", at(86_400));
        assert_eq!(book.reports(at(86_400)).reports, []);
        assert_eq!(book.receive("a", talk, wake("m"), at(86_401)), Err(Refused::Replaced));
        // One that has come back is not forgotten because somebody saw an old list of pods.
        book.open(&hello("a", 9), at(86_402)).unwrap();
        book.forget("a", at(86_403));
        assert_eq!(book.reports(at(86_403)).reports.len(), 1);
    }

    #[test]
    fn a_word_that_tells_nothing_makes_what_was_told_no_younger() {
        let mut book = Book::default();
        let talk = book.open(&hello("a", 8), at(0)).unwrap();
        book.receive("a", talk, demand(&[("m", 5, false)]), at(1)).unwrap();
        book.receive("a", talk, wake("m"), at(50)).unwrap();
        let again = book.open(&hello("a", 8), at(60)).unwrap();
        let models = vec![ModelDemand::default(); MAX_MODELS + 1];
        let up = Up {
            demand: Some(ReportedDemand { models, ..ReportedDemand::default() }),
            ..Up::default()
        };
        assert_eq!(book.receive("a", again, up, at(70)), Err(Refused::TooMuch));
        let report = &book.reports(at(70)).reports[0];
        assert_eq!((report.gone, report.reported_at), (false, Some(at(1))));
    }

    #[test]
    fn what_changed_in_the_last_half_minute_is_remembered_and_told_by_one_who_comes() {
        let mut book = Book::default();
        let talk = book.open(&hello("a", 8), at(100)).unwrap();
        let past = |age_ms, arrived| ReportedPast {
            age_ms,
            models: demand(&[("m", arrived, false)]).demand.unwrap().models,
        };
        let up =
            Up { past: vec![past(99_000, 1), past(20_000, 2), past(5_000, 4)], ..Up::default() };
        book.receive("a", talk, up, at(100)).unwrap();
        let seen = |book: &Book| {
            let report = book.reports(at(101)).reports.remove(0);
            let moments = report.past.iter().map(|(at, models)| (*at, models.len()));
            (report.reported_at, moments.collect::<Vec<_>>())
        };
        assert_eq!(seen(&book), (None, vec![(at(80), 1), (at(95), 1)]), "the first is too old");
        for (second, arrived) in [(101, 4), (102, 4), (103, 9)] {
            book.receive("a", talk, demand(&[("m", arrived, false)]), at(second)).unwrap();
        }
        let (reported, moments) = seen(&book);
        assert_eq!(reported, Some(at(103)));
        assert_eq!(moments[2..], [(at(101), 1), (at(102), 0), (at(103), 1)]);
        // Told again by one who comes again, it changes nothing.
        let again = Up { past: vec![past(5_000, 4)], ..Up::default() };
        book.receive("a", talk, again, at(103)).unwrap();
        assert_eq!(seen(&book).1, moments);
        book.receive("a", talk, demand(&[("m", 9, false)]), at(200)).unwrap();
        assert_eq!(seen(&book).1, [(at(200), 0)]);
        let much = vec![past(1, 1); 2 * MAX_PAST + 1];
        let much = Up { past: much, ..Up::default() };
        assert_eq!(book.receive("a", talk, much, at(201)), Err(Refused::TooMuch));
    }

    #[test]
    fn who_is_refused_is_known_to_be_there() {
        let mut book = Book::default();
        let other = |name| Hello { protocol: None, ..hello(name, 8) };
        assert!(book.open(&other("new"), at(0)).is_err());
        let talk = book.open(&hello("known", 8), at(0)).unwrap();
        book.receive("known", talk, demand(&[("m", 5, false)]), at(0)).unwrap();
        assert!(book.open(&other("known"), at(1)).is_err());
        let refused = |book: &Book| book.reports(at(1)).refused.into_iter().collect::<Vec<_>>();
        assert_eq!(refused(&book), ["new"], "what the other told stands, and ages");
        assert_eq!(book.reports(at(1)).reports[0].reported_at, Some(at(0)));
        book.sweep(at(599));
        assert_eq!(refused(&book), ["new"]);
        book.sweep(at(600));
        assert_eq!(refused(&book), [""; 0], "it does not come any more");
        assert!(book.open(&other("new"), at(700)).is_err());
        book.open(&hello("new", 8), at(701)).unwrap();
        assert_eq!(refused(&book), [""; 0], "it can talk now");
    }

    #[test]
    fn a_gateway_that_comes_back_keeps_its_word_unless_it_began_anew() {
        let mut book = Book::default();
        let first = book.open(&hello("a", 8), at(0)).unwrap();
        book.receive("a", first, demand(&[("m", 5, false)]), at(1)).unwrap();
        let second = book.open(&hello("a", 8), at(3)).unwrap();
        let report = &book.reports(at(3)).reports[0];
        assert_eq!((report.models[0].arrived, report.since), (5, at(3)));
        assert_eq!(report.orders, 0, "none of ours reached it on this connection");
        assert_eq!(book.receive("a", first, demand(&[]), at(4)), Err(Refused::Replaced));
        book.receive("a", second, demand(&[("m", 6, false)]), at(4)).unwrap();
        book.open(&hello("a", 10), at(5)).unwrap();
        let report = &book.reports(at(5)).reports[0];
        assert!(report.reported_at.is_none() && report.models.is_empty(), "its sums began again");
    }

    #[test]
    fn a_wake_is_wanted_once_until_nobody_waits() {
        let mut book = Book::default();
        let a = book.open(&hello("a", 8), at(0)).unwrap();
        let b = book.open(&hello("b", 8), at(0)).unwrap();
        assert_eq!(book.receive("a", a, wake("m"), at(1)), Ok(true));
        assert_eq!(book.receive("a", a, wake("m"), at(1)), Ok(false));
        assert_eq!(book.receive("a", a, demand(&[("m", 1, true)]), at(2)), Ok(false));
        assert_eq!(
            book.receive("b", b, demand(&[("m", 1, true), ("n", 1, true)]), at(2)),
            Ok(true)
        );
        assert_eq!(names(&book.waited_for(at(2))), ["m", "n"]);
        assert_eq!(book.receive("a", a, demand(&[("m", 1, false)]), at(3)), Ok(true));
        assert_eq!(names(&book.waited_for(at(3))), ["m", "n"], "b still waits");
        assert_eq!(
            names(&book.waited_for(at(12))),
            [] as [&str; 0],
            "b is gone, and so are its callers"
        );
        assert_eq!(book.receive("b", b, Up::default(), at(13)), Ok(true), "and is back");
    }

    #[test]
    fn other_versions_names_and_crowds_are_refused() {
        let mut book = Book::default();
        let other = Protocol { major: 2, minor: 0 };
        let speaks = |protocol| Hello { protocol, ..hello("a", 8) };
        let refused = book.open(&speaks(Some(other)), at(0)).unwrap_err();
        assert!(refused.to_string().contains("version 2.0"), "{refused}");
        assert!(book.reports(at(0)).refused.contains("a"), "it is there, and routes");
        assert!(book.open(&speaks(None), at(0)).is_err());
        let minor = Protocol { major: Protocol::OURS.major, minor: 99 };
        assert!(book.open(&speaks(Some(minor)), at(0)).is_ok());
        for name in ["", "a\nb", &"x".repeat(513)] {
            assert_eq!(book.open(&hello(name, 8), at(0)), Err(Refused::Name));
        }
        let first = book.gateways["a"].talk;
        book.receive("a", first, demand(&[]), at(0)).unwrap();
        for number in 0..GATEWAYS - 1 {
            book.open(&hello(&number.to_string(), 8), at(5)).unwrap();
        }
        assert_eq!(book.open(&hello("more", 8), at(6)), Err(Refused::TooMany));
        let reports = book.reports(at(6));
        assert!(reports.refused.contains("more") && !reports.crowded);
        // The first is gone by now, and makes room; from then on nobody knows what it has.
        book.open(&hello("more", 8), at(11)).unwrap();
        assert_eq!(book.gateways.len(), GATEWAYS);
        assert!(book.reports(at(11)).crowded);
        let talk = book.open(&hello("more", 8), at(11)).unwrap();
        let models = vec![ModelDemand::default(); MAX_MODELS + 1];
        let up = Up {
            demand: Some(ReportedDemand { models, ..ReportedDemand::default() }),
            ..Up::default()
        };
        assert_eq!(book.receive("more", talk, up, at(11)), Err(Refused::TooMuch));
    }

    #[test]
    fn a_clock_that_was_set_back_makes_nobody_old() {
        let mut book = Book::default();
        book.open(&hello("a", 8), at(100)).unwrap();
        assert!(!book.reports(at(0)).reports[0].gone);
    }
}
