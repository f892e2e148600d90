//! What happens in a world.

use super::store::{Handle, Objects};
use crate::api::worlds::{CallingTenant, NewBatch, cancel, create};
use crate::forms::{FileObject, LineResult, NewId, Purpose, seconds};
use crate::lease::StoreLeases;
use crate::lines::{LineOutcome, LineToSend};
use crate::state::{BatchKey, FileWriter, PatientStore, folder, put_file_object};
use crate::worker::{EndedLine, Worker, WorkerLimits};
use flyball_core::units::{Micros, Timestamp};
use futures::FutureExt as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// When worlds begin, in seconds.
pub(super) const BEGIN: u64 = 1_800_000_000;

/// A batch that somebody asks for.
#[derive(Clone, Debug)]
pub(super) struct PlannedBatch {
    pub(super) tenant: String,
    /// Seconds after the beginning.
    pub(super) at: u64,
    pub(super) lines: u32,
    pub(super) window_minutes: u64,
    pub(super) cancelled_at: Option<u64>,
    pub(super) is_damaged: bool,
}

/// What is to happen.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) batches: Vec<PlannedBatch>,
    pub(super) workers: usize,
    pub(super) lines_at_once: usize,
    /// Seconds of a line, from and to.
    pub(super) line_seconds: (u64, u64),
    pub(super) step_seconds: u64,
    /// Of a thousand calls to the store, those without an answer.
    lost: u32,
    /// Calls after which workers die, one after the other, and whether the last call is done.
    deaths: Vec<(u64, bool)>,
    /// Of a thousand steps, those after which a worker stands still for a minute and more.
    pauses: u32,
    /// Whether some lines find no room at first.
    is_crowded: bool,
}

impl Plan {
    /// One batch that nothing happens to.
    pub(super) fn plain(lines: u32) -> Self {
        let batch = PlannedBatch {
            tenant: "ml/a".to_owned(),
            at: 0,
            lines,
            window_minutes: 60,
            cancelled_at: None,
            is_damaged: false,
        };
        Self {
            batches: vec![batch],
            workers: 1,
            lines_at_once: 4,
            line_seconds: (1, 4),
            step_seconds: 1,
            lost: 0,
            deaths: Vec::new(),
            pauses: 0,
            is_crowded: false,
        }
    }

    pub(super) fn drawn(seed: u64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed ^ 0x5eed);
        let batches = (0..random.random_range(1..=4)).map(|_| PlannedBatch {
            tenant: ["ml/a", "ml/b", "c"][random.random_range(0..3)].to_owned(),
            at: random.random_range(0..60),
            lines: random.random_range(1..=80),
            window_minutes: [1, 2, 60, 60][random.random_range(0..4)],
            cancelled_at: random.random_bool(0.2).then(|| random.random_range(0..120)),
            is_damaged: random.random_bool(0.05),
        });
        let batches = batches.collect();
        let deaths = (0..random.random_range(0..5))
            .map(|_| (random.random_range(0..200), random.random()))
            .collect();
        Self {
            batches,
            workers: random.random_range(1..=2),
            lines_at_once: random.random_range(1..=8),
            line_seconds: (1, random.random_range(2..20)),
            step_seconds: 1,
            lost: [0, 5, 50][random.random_range(0..3)],
            deaths,
            pauses: [0, 0, 5][random.random_range(0..3)],
            is_crowded: random.random(),
        }
    }

    pub(super) fn cancelled(mut self, at: u64) -> Self {
        self.batches[0].cancelled_at = Some(at);
        self
    }

    /// Its window ends before its lines do.
    pub(super) fn short(mut self) -> Self {
        (self.batches[0].window_minutes, self.line_seconds) = (1, (15, 40));
        self
    }

    pub(super) fn killed_at(mut self, call: u64, is_done: bool) -> Self {
        self.deaths = vec![(call, is_done)];
        self
    }

    pub(super) fn of(batches: Vec<PlannedBatch>, lines_at_once: usize, step_seconds: u64) -> Self {
        let line_seconds = (step_seconds, step_seconds);
        Self { batches, lines_at_once, line_seconds, step_seconds, ..Self::plain(1) }
    }
}

/// A batch that is there.
#[derive(Clone, Debug)]
pub(super) struct MadeBatch {
    pub(super) key: BatchKey,
    pub(super) plan: PlannedBatch,
}

pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) objects: Arc<Mutex<Objects>>,
    pub(super) made: Vec<MadeBatch>,
    /// How often each line was sent.
    pub(super) sent: BTreeMap<(BatchKey, u32), u32>,
    pub(super) deaths: u64,
    pub(super) paused: u64,
    random: Pcg64Mcg,
    now: u64,
    workers: Vec<Process>,
    first_calls: u64,
    ids: u64,
}

/// A worker and the lines that it has sent.
struct Process {
    worker: Worker<PatientStore<Handle>, StoreLeases<PatientStore<Handle>>>,
    handle: Handle,
    lines: Vec<(u64, LineToSend)>,
    paused_until: u64,
}

impl World {
    pub(super) fn new(seed: u64, plan: Plan) -> Self {
        Self {
            plan,
            objects: Arc::default(),
            made: Vec::new(),
            sent: BTreeMap::new(),
            deaths: 0,
            paused: 0,
            random: Pcg64Mcg::seed_from_u64(seed),
            now: BEGIN,
            workers: Vec::new(),
            first_calls: 0,
            ids: 0,
        }
    }

    /// Lines of all batches.
    pub(super) fn lines(&self) -> u64 {
        self.plan.batches.iter().map(|batch| u64::from(batch.lines)).sum()
    }

    pub(super) fn calls_of_first_worker(&self) -> u64 {
        self.first_calls
    }

    pub(super) fn time(&self) -> Timestamp {
        Timestamp::from_millis(self.now * 1_000)
    }

    /// A store without faults, as the one who checks sees it.
    pub(super) fn plain_store(&self) -> Handle {
        Handle::new(&self.objects, 0, 0)
    }

    /// Until all is over. A world that does not end is wrong, which the check says.
    pub(super) fn play(&mut self) {
        let last = self.plan.batches.iter().map(|one| one.at + one.window_minutes * 60).max();
        let end = BEGIN + last.unwrap_or_default() + 1_800;
        while self.now < end {
            self.objects.lock().unwrap().now = self.time();
            self.make_batches();
            self.cancel_batches();
            while self.workers.len() < self.plan.workers {
                self.begin_worker();
            }
            for index in (0..self.workers.len()).rev() {
                self.step(index);
            }
            self.now += self.plan.step_seconds;
            let is_all_made = self.made.len() == self.plan.batches.len();
            let open =
                self.objects.lock().unwrap().all.keys().any(|path| path.starts_with("open/"));
            let is_idle = self.workers.iter().all(|process| process.worker.holds() == 0);
            if is_all_made && !open && is_idle {
                return;
            }
        }
    }

    fn begin_worker(&mut self) {
        let seed = self.random.random();
        let handle = Handle::new(&self.objects, seed, self.plan.lost);
        if !self.plan.deaths.is_empty() {
            let (call, is_done) = self.plan.deaths.remove(0);
            handle.die_at(call, is_done);
        }
        let name = format!("w{seed:x}");
        let store = Arc::new(PatientStore(handle.clone()));
        let leases = StoreLeases::new(Arc::clone(&store), &name);
        let limits = WorkerLimits { lines: self.plan.lines_at_once, batches: 8 };
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let worker = Worker::new(store, leases, &name, limits, Box::new(move || random.random()));
        self.workers.push(Process { worker, handle, lines: Vec::new(), paused_until: 0 });
    }

    fn make_batches(&mut self) {
        let due: Vec<PlannedBatch> = self.plan.batches[self.made.len()..]
            .iter()
            .take_while(|batch| BEGIN + batch.at <= self.now)
            .cloned()
            .collect();
        for plan in due {
            let key = self.make(&plan);
            self.made.push(MadeBatch { key, plan });
        }
    }

    fn make(&mut self, plan: &PlannedBatch) -> BatchKey {
        let store = self.plain_store();
        let tenant = CallingTenant { path: plan.tenant.clone(), folder: folder(&plan.tenant) };
        self.ids += 1;
        let id = NewId { at: self.time(), random: self.ids.to_be_bytes() };
        let mut text: String =
            (0..plan.lines).map(|index| input_line(plan, index) + "\n").collect();
        if plan.is_damaged {
            text.push_str("{\"custom_id\": ");
        }
        let done = async {
            let mut writer = FileWriter::new(&tenant.folder, &id.file());
            writer.push(&store, text.as_bytes()).await.unwrap();
            let mut file =
                FileObject::new(id.file(), "in.jsonl".to_owned(), Purpose::Batch, seconds(id.at));
            file.bytes = writer.finish(&store).await.unwrap();
            put_file_object(&store, &tenant.folder, &file).await.unwrap();
            let asked = NewBatch {
                input_file_id: file.id,
                endpoint: "/v1/completions".to_owned(),
                completion_window: format!("{}m", plan.window_minutes),
                metadata: None,
                output_expires_after: None,
            };
            create(&store, &tenant, asked, 864_000, id).await.unwrap()
        };
        let batch = done.now_or_never().unwrap();
        BatchKey { tenant: folder(&plan.tenant), id: batch.id }
    }

    fn cancel_batches(&mut self) {
        let store = self.plain_store();
        for made in &self.made {
            let at = made.plan.cancelled_at.map(|after| BEGIN + made.plan.at + after);
            if at.is_some_and(|at| at <= self.now && self.now < at + self.plan.step_seconds) {
                // What is over cannot be cancelled any more.
                let _ = cancel(&store, &made.key, self.now).now_or_never().unwrap();
            }
        }
    }

    /// A worker's turn, unless it stands still. It may die in it.
    fn step(&mut self, index: usize) {
        let (now, time) = (self.now, self.time());
        let process = &mut self.workers[index];
        if process.paused_until > now {
            return;
        }
        if self.random.random_range(0..1_000) < self.plan.pauses {
            process.paused_until = now + self.random.random_range(10..120);
            self.paused += 1;
            return;
        }
        let (over, rest) =
            std::mem::take(&mut process.lines).into_iter().partition(|(at, _)| *at <= now);
        process.lines = rest;
        let over: Vec<(u64, LineToSend)> = over;
        let ended = over.into_iter().map(|(_, line)| {
            let times = self.sent[&(line.key.clone(), line.index)];
            let became = outcome(&line, times, self.plan.is_crowded);
            EndedLine { key: line.key, index: line.index, became }
        });
        let turn = process.worker.turn(time, ended.collect()).now_or_never();
        if self.deaths == 0 && index == 0 {
            self.first_calls = process.handle.calls();
        }
        let Some(turn) = turn else {
            self.deaths += 1;
            self.workers.remove(index);
            return;
        };
        process.lines.retain(|(_, line)| !turn.stop.contains(&line.key));
        for line in turn.send {
            *self.sent.entry((line.key.clone(), line.index)).or_default() += 1;
            let (least, most) = self.plan.line_seconds;
            process.lines.push((now + self.random.random_range(least..=most), line));
        }
    }
}

/// The id of a line, which says what becomes of it.
pub(super) fn custom_id(plan: &PlannedBatch, index: u32) -> String {
    let kind = match index % 11 {
        3 => "refused",
        7 => "later",
        _ => "fine",
    };
    format!("{}-{}-{index}-{kind}", plan.tenant, plan.at)
}

fn input_line(plan: &PlannedBatch, index: u32) -> String {
    let id = custom_id(plan, index);
    format!(
        r#"{{"custom_id":"{id}","method":"POST","url":"/v1/completions","body":{{"model":"m","prompt":"{id}"}}}}"#
    )
}

/// What a gateway makes of a line that is sent so often.
fn outcome(line: &LineToSend, times: u32, is_crowded: bool) -> LineOutcome {
    let body: serde_json::Value = serde_json::from_str(&line.body).unwrap();
    let prompt = body["prompt"].as_str().unwrap();
    if is_crowded && prompt.ends_with("later") && times < 2 {
        return LineOutcome::Later(Micros::from_seconds(3));
    }
    let status = if prompt.ends_with("refused") { 400 } else { 200 };
    let body = format!(
        r#"{{"echo":"{prompt}","usage":{{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}}}"#
    );
    let request_id = format!("r{times}");
    LineOutcome::Done(LineResult::Answer { status, request_id, body })
}
