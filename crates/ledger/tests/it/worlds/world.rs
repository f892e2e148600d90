//! A world: gateways on machines, two committers, a witness and a bucket, for a while, and then in peace.

use super::disk::{Files, VirtualDisk};
use super::fault::Life;
use super::store::{Bucket, Faults, VirtualStore};
use crate::entries::{block_on, close, open};
use flyball_core::units::{Micros, Timestamp};
use flyball_ledger::LedgerError;
use flyball_ledger::journal::{Journal, JournalTail, SharedJournal, SourceReport, lock};
use flyball_ledger::ship::Shipper;
use flyball_ledger::source::Source;
use flyball_ledger::table::{MergeSpan, TableLog, commit_inbox, merge, vacuum};
use flyball_ledger::witness::{SourceEnd, Witness};
use flyball_resources::usage::USAGE;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

const MACHINES: usize = 3;
const STEPS: u32 = 500;
const START: Timestamp = Timestamp::from_millis(1_795_000_000_000);
const SECOND: Micros = Micros::from_seconds(1);

/// How long files are kept that do not count: not long, so that they go while others may still look for them.
const KEEP: Micros = Micros::from_minutes(30);

/// A request, and what is known of it.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) number: u64,
    pub(crate) source: Source,
    pub(crate) fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nobody saw its end. `durable`: its opening was handed to the disk.
    Open { durable: bool },
    /// Its process ended while its end was written.
    Between,
    /// Its last byte left.
    Answered { at: Timestamp },
}

/// How a source ended, if it did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) at: Timestamp,
    /// Whether what came after the last second may be lost.
    pub(crate) with_machine: bool,
    pub(crate) in_memory: bool,
}

/// What happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) requests: u64,
    pub(crate) killed: u64,
    pub(crate) mid_step: u64,
    pub(crate) power_failures: u64,
    pub(crate) machines_gone: u64,
    pub(crate) disks_full: u64,
    pub(crate) outages: u64,
    pub(crate) lies: u64,
    pub(crate) committers_ended: u64,
    pub(crate) wrongly_gone: u64,
    pub(crate) merged: u64,
    pub(crate) commits: u64,
    pub(crate) corrections: u64,
    pub(crate) lost_and_marked: u64,
    pub(crate) unclosed: u64,
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
}

impl Tally {
    pub(crate) fn counts(&self) -> [(&'static str, u64); 17] {
        [
            ("requests", self.requests),
            ("killed", self.killed),
            ("mid step", self.mid_step),
            ("power failures", self.power_failures),
            ("machines gone", self.machines_gone),
            ("disks full", self.disks_full),
            ("outages", self.outages),
            ("lies", self.lies),
            ("committers ended", self.committers_ended),
            ("wrongly gone", self.wrongly_gone),
            ("merged", self.merged),
            ("commits", self.commits),
            ("corrections", self.corrections),
            ("lost and marked", self.lost_and_marked),
            ("unclosed", self.unclosed),
            ("lost", self.lost),
            ("doubled", self.doubled),
        ]
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.killed += other.killed;
        self.mid_step += other.mid_step;
        self.power_failures += other.power_failures;
        self.machines_gone += other.machines_gone;
        self.disks_full += other.disks_full;
        self.outages += other.outages;
        self.lies += other.lies;
        self.committers_ended += other.committers_ended;
        self.wrongly_gone += other.wrongly_gone;
        self.merged += other.merged;
        self.commits += other.commits;
        self.corrections += other.corrections;
        self.lost_and_marked += other.lost_and_marked;
        self.unclosed += other.unclosed;
        self.lost += other.lost;
        self.doubled += other.doubled;
    }
}

struct Machine {
    disk: Arc<Mutex<Files>>,
    boot: u64,
    process: Process,
    /// All processes that wrote to this disk.
    sources: Vec<Source>,
}

struct Process {
    source: Source,
    life: Life,
    journal: SharedJournal<VirtualDisk>,
    tail: JournalTail<VirtualDisk>,
    /// Away while it ships.
    shipper: Option<Shipper<VirtualDisk>>,
    open: Vec<usize>,
}

struct Committer {
    life: Life,
    log: Option<TableLog>,
}

/// What a task gives back.
enum Done {
    Shipped(usize, Source, Box<Shipper<VirtualDisk>>),
    Committed(usize, Life, Box<TableLog>, u64),
    Witnessed(Source, SourceEnd, Timestamp, bool),
}

type Task = Pin<Box<dyn Future<Output = Done>>>;

pub(crate) struct World {
    rng: Pcg64Mcg,
    now: Timestamp,
    beaten: Timestamp,
    pub(crate) bucket: Arc<Mutex<Bucket>>,
    machines: Vec<Machine>,
    committers: Vec<Committer>,
    tasks: Vec<(Timestamp, Task)>,
    reports: BTreeMap<Source, (Timestamp, SourceReport)>,
    /// Processes that ended and whose reports are still there.
    ended: BTreeMap<Source, SourceEnd>,
    /// Processes that were taken for gone.
    doubted: BTreeSet<Source>,
    pub(crate) ends: BTreeMap<Source, End>,
    pub(crate) requests: Vec<Request>,
    names: u64,
    pub(crate) tally: Tally,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut world = Self {
            rng: Pcg64Mcg::seed_from_u64(seed),
            now: START,
            beaten: START,
            bucket: Arc::new(Mutex::new(Bucket::new(seed ^ 0x5eed, START))),
            machines: Vec::new(),
            committers: Vec::new(),
            tasks: Vec::new(),
            reports: BTreeMap::new(),
            ended: BTreeMap::new(),
            doubted: BTreeSet::new(),
            ends: BTreeMap::new(),
            requests: Vec::new(),
            names: 0,
            tally: Tally::default(),
        };
        for _ in 0..MACHINES {
            let disk = Arc::default();
            let process = world.process(&disk, 1);
            let sources = vec![process.source.clone()];
            world.machines.push(Machine { disk, boot: 1, process, sources });
        }
        for _ in 0..2 {
            world.committers.push(Committer { life: Life::default(), log: Some(new_log()) });
        }
        world
    }

    /// Lives through all of it, and then until nothing is left to do.
    pub(crate) fn play(&mut self) -> Result<(), String> {
        for _ in 0..STEPS {
            self.step();
            self.bury();
        }
        self.bucket.lock().unwrap().faults = Faults::default();
        for machine in &mut self.machines {
            machine.disk.lock().unwrap().room = None;
        }
        for _ in 0..80 {
            if self.calm_round() {
                self.tally.lies = self.bucket.lock().unwrap().lied;
                return Ok(());
            }
        }
        Err("not settled after 80 rounds in peace".to_owned())
    }

    pub(crate) fn store(&self) -> VirtualStore {
        VirtualStore { bucket: Arc::clone(&self.bucket), life: Life::default() }
    }

    fn process(&mut self, disk: &Arc<Mutex<Files>>, boot: u64) -> Process {
        self.names += 1;
        let source: Source = format!("gateway-{}", self.names).parse().unwrap();
        let life = Life::default();
        let hand = || VirtualDisk { files: Arc::clone(disk), life: life.clone() };
        let journal = Journal::new(hand(), &USAGE, source.clone(), boot);
        let journal: SharedJournal<VirtualDisk> = Arc::new(Mutex::new(journal));
        let tail = JournalTail::new(Arc::clone(&journal), hand());
        let shipper = Some(Shipper::new(Arc::clone(&journal), hand(), boot));
        Process { source, life, journal, tail, shipper, open: Vec::new() }
    }

    fn step(&mut self) {
        let machine = self.rng.random_range(0..MACHINES);
        match self.rng.random_range(0..100) {
            0..22 => self.open(machine),
            22..45 => self.close(machine),
            45..70 => (0..self.rng.random_range(1..16)).for_each(|_| self.poll()),
            70..78 => self.ship(machine),
            78..87 => self.commit(),
            87..91 => self.pass(),
            91..94 => self.witness(),
            94..97 => self.crash(machine),
            _ => self.fault(machine),
        }
        let small = Micros::from_millis(self.rng.random_range(0..60));
        self.forward(small);
    }

    fn forward(&mut self, by: Micros) {
        if self.now.saturating_add(by).since(self.beaten).is_none_or(|since| since >= SECOND) {
            self.beat();
        }
        self.now = self.now.saturating_add(by);
        self.bucket.lock().unwrap().now = self.now;
    }

    /// What all processes do every second.
    fn beat(&mut self) {
        self.beaten = self.now;
        for machine in &mut self.machines {
            let process = &mut machine.process;
            if process.tail.sync().is_ok()
                && let Ok(report) = process.tail.report()
            {
                self.reports.insert(process.source.clone(), (self.now, report));
            }
        }
        self.bury();
    }

    /// Time in which nothing comes.
    fn pass(&mut self) {
        self.beat();
        let long = Micros::from_seconds(self.rng.random_range(1..900));
        // Nothing is under way for as long as files are kept that do not count.
        let then = self.now.saturating_add(long);
        while self.tasks.iter().any(|(since, _)| then.apart(*since) > KEEP) {
            self.poll();
            self.bury();
        }
        self.forward(long);
        self.beat();
    }

    fn open(&mut self, machine: usize) {
        let (number, now) = (self.requests.len() as u64, self.now);
        let flush = self.rng.random_bool(0.5);
        let process = &mut self.machines[machine].process;
        if process.open.len() >= 12 {
            return;
        }
        let (tenant, key) = names(number);
        let mut journal = lock(&process.journal);
        let _ = journal.append(&open(number, &tenant, &key, now));
        let durable = flush && journal.flush().is_ok();
        drop(journal);
        process.open.push(self.requests.len());
        let source = process.source.clone();
        self.requests.push(Request { number, source, fate: Fate::Open { durable } });
        self.tally.requests += 1;
    }

    fn close(&mut self, machine: usize) {
        let process = &mut self.machines[machine].process;
        if process.open.is_empty() {
            return;
        }
        let place = self.rng.random_range(0..process.open.len());
        let request = process.open.swap_remove(place);
        let (tenant, key) = names(request as u64);
        // A full disk is no reason to keep a client waiting.
        let _ = lock(&process.journal).append(&close(request as u64, &tenant, &key, self.now));
        let over = process.life.is_over();
        self.requests[request].fate =
            if over { Fate::Between } else { Fate::Answered { at: self.now } };
    }

    fn ship(&mut self, machine: usize) {
        let rotate = self.rng.random_bool(0.7);
        let process = &mut self.machines[machine].process;
        let Some(mut shipper) = process.shipper.take() else { return };
        if rotate {
            lock(&process.journal).rotate();
        }
        let store = VirtualStore { bucket: Arc::clone(&self.bucket), life: process.life.clone() };
        let (source, now) = (process.source.clone(), self.now);
        self.start(async move {
            // What failed is tried again later.
            let _ = shipper.ship(&store, now).await;
            Done::Shipped(machine, source, Box::new(shipper))
        });
    }

    fn start(&mut self, task: impl Future<Output = Done> + 'static) {
        self.tasks.push((self.now, Box::pin(task)));
    }

    fn commit(&mut self) {
        let number = self.rng.random_range(0..self.committers.len());
        let kind = self.rng.random_range(0..10);
        self.start_commit(number, kind);
    }

    fn start_commit(&mut self, number: usize, kind: u32) {
        let committer = &mut self.committers[number];
        let Some(mut log) = committer.log.take() else { return };
        let life = committer.life.clone();
        let store = VirtualStore { bucket: Arc::clone(&self.bucket), life: life.clone() };
        let now = self.now;
        self.start(async move {
            let merged = work(&store, &mut log, kind, now).await.unwrap_or(0);
            Done::Committed(number, life, Box::new(log), merged as u64)
        });
    }

    /// The operator looks at a process that has ended, or at one that it cannot hear and that lives.
    fn witness(&mut self) {
        let source = if self.rng.random_bool(0.2) {
            let machine = self.rng.random_range(0..MACHINES);
            self.tally.wrongly_gone += 1;
            self.doubted.insert(self.machines[machine].process.source.clone());
            (self.machines[machine].process.source.clone(), SourceEnd::Machine)
        } else {
            let place = self.rng.random_range(0..self.ended.len().max(1));
            let Some((source, end)) = self.ended.iter().nth(place) else { return };
            (source.clone(), *end)
        };
        self.start_witness(source.0, source.1);
    }

    fn start_witness(&mut self, source: Source, end: SourceEnd) {
        let Some((at, report)) = self.reports.get(&source).cloned() else {
            self.ended.remove(&source);
            return;
        };
        let life = self.committers[0].life.clone();
        let store = VirtualStore { bucket: Arc::clone(&self.bucket), life };
        self.start(async move {
            let mut witness = Witness::default();
            witness.reported(source.clone(), report, at);
            let mut log = TableLog::new(&USAGE);
            let ended = witness.ended(&store, &mut log, &source, end).await;
            let over = ended.is_ok() && witness.sources().next().is_none();
            Done::Witnessed(source, end, at, over)
        });
    }

    /// Lets one of all that are under way do one step.
    fn poll(&mut self) {
        if self.tasks.is_empty() {
            return;
        }
        let place = self.rng.random_range(0..self.tasks.len());
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(done) = self.tasks[place].1.as_mut().poll(&mut context) {
            drop(self.tasks.swap_remove(place));
            self.done(done);
        }
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Shipped(machine, source, shipper) => {
                let process = &mut self.machines[machine].process;
                if process.source == source {
                    process.shipper = Some(*shipper);
                }
            }
            Done::Committed(number, life, log, merged) => {
                self.tally.merged += merged;
                if !life.is_over() {
                    self.committers[number].log = Some(*log);
                }
            }
            Done::Witnessed(source, end, at, over) => {
                // Of one that lives, or has reported or ended in another way since, more may be to do.
                let same = self.reports.get(&source).is_some_and(|(reported, _)| *reported == at);
                if over && same && self.ended.get(&source) == Some(&end) {
                    self.reports.remove(&source);
                    self.ended.remove(&source);
                }
            }
        }
    }

    fn crash(&mut self, machine: usize) {
        let steps = self.rng.random_range(0..14);
        match self.rng.random_range(0..8) {
            0 | 1 => {
                self.tally.killed += 1;
                self.end_process(machine, false);
            }
            2 | 3 => self.machines[machine].process.life.ends_after(steps),
            4 => {
                self.tally.power_failures += 1;
                self.end_process(machine, true);
            }
            5 => {
                self.tally.machines_gone += 1;
                self.machines[machine].disk = Arc::default();
                self.end_process(machine, true);
                let process = self.machines[machine].process.source.clone();
                self.machines[machine].sources = vec![process];
            }
            _ => {
                let number = self.rng.random_range(0..self.committers.len());
                self.committers[number].life.ends_after(steps);
            }
        }
    }

    fn fault(&mut self, machine: usize) {
        let kind = self.rng.random_range(0..6);
        let room = self.rng.random_range(0..400);
        if kind < 2 {
            let mut disk = self.machines[machine].disk.lock().unwrap();
            disk.room = if disk.room.is_some() { None } else { Some(room) };
            self.tally.disks_full += u64::from(disk.room.is_some());
            return;
        }
        let mut bucket = self.bucket.lock().unwrap();
        let faults = &mut bucket.faults;
        match kind {
            // More often good than bad: a store that never works shows nothing.
            _ if faults.away || faults.full => (faults.away, faults.full) = (false, false),
            2 => faults.away = true,
            3 => faults.full = true,
            4 => faults.lies = if faults.lies > 0 { 0 } else { 30 },
            _ => faults.drops = if faults.drops > 0 { 0 } else { 30 },
        }
        self.tally.outages += u64::from(faults.away);
    }

    /// Starts again what ended in the middle of a step.
    fn bury(&mut self) {
        for machine in 0..MACHINES {
            if self.machines[machine].process.life.is_over() {
                self.tally.mid_step += 1;
                self.end_process(machine, false);
            }
        }
        for committer in &mut self.committers {
            if committer.life.is_over() {
                self.tally.committers_ended += 1;
                *committer = Committer { life: Life::default(), log: Some(new_log()) };
            }
        }
    }

    fn end_process(&mut self, machine: usize, with_machine: bool) {
        let place = &mut self.machines[machine];
        // Nothing that it still has under way does anything.
        place.process.life.ends_after(0);
        let _ = place.process.life.half();
        let in_memory = lock(&place.process.journal).is_in_memory();
        let doubted = self.doubted.contains(&place.process.source);
        let kind = if with_machine || doubted { SourceEnd::Machine } else { SourceEnd::Process };
        let end = End { at: self.now, with_machine, in_memory };
        self.ends.insert(place.process.source.clone(), end);
        self.ended.insert(place.process.source.clone(), kind);
        if with_machine {
            place.disk.lock().unwrap().power_failure(&mut self.rng);
            place.boot += 1;
            for source in &place.sources {
                // What an earlier process left here may be gone too.
                if self.reports.contains_key(source) {
                    self.ended.insert(source.clone(), SourceEnd::Machine);
                }
                self.ends.entry(source.clone()).and_modify(|end| end.with_machine = true);
            }
        }
        let (disk, boot) = (Arc::clone(&place.disk), place.boot);
        let process = self.process(&disk, boot);
        let place = &mut self.machines[machine];
        place.sources.push(process.source.clone());
        place.process = process;
    }

    /// Everybody does all there is to do. Says whether that was nothing.
    fn calm_round(&mut self) -> bool {
        self.beat();
        self.forward(Micros::from_minutes(5));
        for machine in 0..MACHINES {
            self.ship(machine);
        }
        self.start_commit(0, 0);
        self.start_commit(1, 0);
        for (source, end) in self.ended.clone() {
            self.start_witness(source, end);
        }
        while !self.tasks.is_empty() {
            self.poll();
            self.bury();
        }
        let shipped = |machine: &Machine| {
            let process = &machine.process;
            process.shipper.as_ref().is_some_and(Shipper::is_settled)
                && !lock(&process.journal).is_in_memory()
        };
        self.ended.is_empty() && self.machines.iter().all(shipped) && {
            // What the last processes have not rotated, and then what that leaves in the inbox.
            let idle = self.machines.iter().all(|machine| {
                let mut journal = lock(&machine.process.journal);
                journal.rotate();
                journal.sealed().is_empty()
            });
            idle && self.inbox_is_empty()
        }
    }

    fn inbox_is_empty(&self) -> bool {
        let mut log = TableLog::new(&USAGE);
        let store = self.store();
        block_on(async {
            log.refresh(&store).await.unwrap();
            let before = log.version();
            let committed = commit_inbox(&store, &mut log, self.now).await.unwrap();
            assert!(committed.refused.is_empty(), "{:?}", committed.refused);
            before == log.version()
        })
    }
}

/// A turn of a committer.
async fn work(
    store: &VirtualStore,
    log: &mut TableLog,
    kind: u32,
    now: Timestamp,
) -> Result<usize, LedgerError> {
    match kind {
        0..6 => commit_inbox(store, log, now).await.map(|_| 0),
        6..8 => merge(store, log, MergeSpan::Hour, now).await,
        8 => merge(store, log, MergeSpan::Day, now).await,
        _ => vacuum(store, log, KEEP, now).await.map(|_| 0),
    }
}

/// With a checkpoint every few commits.
fn new_log() -> TableLog {
    TableLog::new(&USAGE).with_checkpoint_every(7)
}

/// The Tenant and the key of a request. Keys are unique, so that each request has a row of its own.
fn names(request: u64) -> (String, String) {
    (format!("ml/t{}", request % 3), format!("r{request}"))
}
