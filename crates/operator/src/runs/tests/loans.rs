//! A run that borrows: held back, lent to, taken back.

use super::*;
use crate::loans::LoanOrder;
use flyball_core::units::Gpus;

/// A run that borrows through a queue, and what was decided about it.
struct BorrowingWorld {
    world: World,
    order: LoanOrder,
}

impl BorrowingWorld {
    fn new() -> Self {
        let mut world = World::new();
        let mut pool: Value = serde_json::to_value(&*world.facts.pools[0]).unwrap();
        pool["spec"]["lending"] = json!({ "keepFree": 1 });
        pool["spec"]["nodeSelector"] = json!({ "gpu": "h100" });
        world.facts.pools = vec![Arc::new(serde_json::from_value(pool).unwrap())];
        world.run["spec"]["borrow"] = json!(true);
        world.run["spec"]["pool"] = json!("h100");
        world.run["spec"]["mode"] = json!("Act");
        let order =
            LoanOrder { gpus: Gpus::ZERO, since: at(0), promise: Micros::from_seconds(100) };
        let mut world = Self { world, order };
        world.queued(true, false);
        world
    }

    /// Kueue's Workload, and the JobSet that it suspends while it is not admitted.
    fn queued(&mut self, active: bool, admitted: bool) {
        self.world.job_set(&json!({ "suspend": !admitted }), &json!({}));
        let workload = json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
            "metadata": { "name": "jobset-ft", "namespace": "ml", "ownerReferences": [
                { "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "ft", "uid": "u" },
            ] },
            "spec": { "active": active },
        });
        self.world.with(JobKind::Workload, Some(workload));
    }

    fn order(&mut self, gpus: u32, since: u64) {
        self.order = LoanOrder { gpus: Gpus::new(gpus), since: at(since), ..self.order };
    }

    /// What is said, done next, and over.
    fn observe(
        &mut self,
        now: u64,
        answer: &HeartbeatAnswer,
    ) -> (RunReport, Option<RunStep>, Option<loan::TakenBack>) {
        let mut run: TrainingRun = serde_json::from_value(self.world.run.clone()).unwrap();
        run.status = self.world.before.clone();
        let run = Arc::new(run);
        let World { facts, workloads, zones, tracked, before, .. } = &mut self.world;
        let seen = observe(&run, facts, workloads, zones, at(now)).expect("listed");
        let tracked = tracked.get_or_insert_with(|| TrackedRun::resume(&run, at(now)));
        let over = loan::note(&seen, tracked, Some(&self.order), at(now));
        let report = consider(&seen, answer, tracked, TICK, at(now));
        *before = Some(report.status.clone());
        let step = loan::next_step(&seen, tracked, false, at(now));
        if let Some(step) = &step {
            tracked.did(step, at(now));
        }
        (report, step, over)
    }
}

fn activates(step: Option<RunStep>) -> Option<bool> {
    match step {
        Some(RunStep::Activate { active, .. }) => Some(active),
        _ => None,
    }
}

#[test]
fn a_borrowing_run_is_held_back_until_something_is_lent_and_stops_after_a_save() {
    let silence = HeartbeatAnswer::NotRequested;
    let mut world = BorrowingWorld::new();
    let (report, step, _) = world.observe(0, &silence);
    assert_eq!(activates(step), Some(false), "Kueue would admit it");
    let waits = "True RunWaiting: pool h100 cannot spare 4 accelerators yet";
    assert_eq!(condition(&report.status, "PlacementApplied"), waits);
    let borrower = report.borrower.unwrap();
    assert_eq!((borrower.gpus, borrower.acts, borrower.stopped), (Gpus::new(4), true, false));
    assert_eq!(report.status.decision, None, "there is no choice of machines");
    world.queued(false, false);
    assert_eq!(world.observe(5, &silence).1, None);

    world.order(4, 10);
    let (report, step, _) = world.observe(10, &silence);
    assert_eq!(activates(step), Some(true));
    assert_eq!(report.status.loan.unwrap().reason, "Lent");
    world.queued(true, true);
    world.world.pods(15, "a", "on-demand");
    let (report, step, _) = world.observe(100, &beat(9, Some(5), 100));
    assert_eq!(step, None);
    let lent = "True Lent: pool h100 lends it 4 accelerators";
    assert_eq!(condition(&report.status, "PlacementApplied"), lent);
    // Four steps of ten seconds, and a restart of which nothing is known.
    assert_eq!(report.borrower.unwrap().thrown_away, Micros::from_seconds(640));

    world.order(0, 200);
    let (report, step, _) = world.observe(201, &beat(19, Some(5), 201));
    let Some(RunStep::Save { instructions, .. }) = step else { panic!("{step:?}") };
    assert!(instructions.save_now && instructions.save_every.is_none());
    let back =
        "False TakenBack: it gives 4 accelerators back to pool h100, within 1 min 40 s at most";
    assert_eq!(condition(&report.status, "PlacementApplied"), back);
    assert_eq!(world.observe(203, &beat(19, Some(5), 203)).1, None, "it saves");
    let (_, step, _) = world.observe(206, &beat(19, Some(19), 206));
    assert_eq!(activates(step), Some(false));
    world.queued(false, false);
    assert_eq!(world.observe(207, &silence).1, None, "its pods end");
    world.world.facts.gangs.clear();
    let (report, _, over) = world.observe(211, &silence);
    let promised = Micros::from_seconds(100);
    assert_eq!(over, Some(loan::TakenBack { took: Micros::from_seconds(11), promised }));
    let loan = report.status.loan.unwrap();
    assert_eq!((loan.reason.as_str(), loan.take_back_seconds), ("TakenBack", Some(11)));
    assert_eq!(loan.since, rfc3339(at(200)));
    assert_eq!(world.observe(216, &silence).2, None, "once");

    // Another operator, and the time stands.
    world.world.tracked = None;
    world.order(0, 300);
    let (report, ..) = world.observe(300, &silence);
    assert_eq!(report.status.loan.unwrap().since, rfc3339(at(200)));
}

#[test]
fn a_save_that_does_not_come_or_does_not_fit_is_not_waited_for() {
    let running = || {
        let mut world = BorrowingWorld::new();
        world.queued(true, true);
        world.world.pods(0, "a", "on-demand");
        world.order(4, 0);
        world.observe(10, &beat(10, Some(5), 10));
        world.order(0, 20);
        world
    };
    let mut world = running();
    assert!(matches!(world.observe(20, &beat(10, Some(5), 20)).1, Some(RunStep::Save { .. })));
    // A hundred seconds, of which thirty are the pods' and fifteen ours.
    assert_eq!(world.observe(74, &beat(10, Some(5), 74)).1, None);
    assert_eq!(activates(world.observe(75, &beat(10, Some(5), 75)).1), Some(false));
    let mut world = running();
    world.order.promise = Micros::from_seconds(50);
    assert_eq!(activates(world.observe(20, &beat(10, Some(5), 20)).1), Some(false), "five seconds");
    let mut world = running();
    assert_eq!(activates(world.observe(20, &beat(10, Some(9), 20)).1), Some(false), "it is saved");
}

#[test]
fn without_a_decision_nothing_is_given_and_nothing_taken() {
    let mut world = BorrowingWorld::new();
    world.queued(true, true);
    world.world.pods(0, "a", "on-demand");
    world.order(4, 0);
    world.observe(10, &beat(10, Some(5), 10));
    let run = Arc::new(serde_json::from_value(world.world.run.clone()).unwrap());
    let World { facts, workloads, zones, tracked, .. } = &mut world.world;
    let seen = observe(&run, facts, workloads, zones, at(20)).expect("listed");
    let tracked = tracked.as_mut().unwrap();
    assert_eq!(loan::note(&seen, tracked, None, at(20)), None);
    assert_eq!(loan::next_step(&seen, tracked, false, at(20)), None);
}

#[test]
fn a_borrowing_run_with_a_job_is_made_on_the_nodes_of_its_pool_once_something_is_lent() {
    let mut world = BorrowingWorld::new();
    world.world.run["spec"]["workloadRef"] = Value::Null;
    world.world.run["spec"]["job"] = json!({ "image": "i", "nodes": 2, "gpusPerNode": 2 });
    world.world.with(JobKind::JobSet, None);
    world.world.with(JobKind::Workload, None);
    let silence = HeartbeatAnswer::NotRequested;
    let (report, step, _) = world.observe(0, &silence);
    assert_eq!(step, None);
    assert!(report.borrower.unwrap().acts);
    world.order(4, 5);
    let (_, step, _) = world.observe(5, &silence);
    let Some(RunStep::Apply(set)) = step else { panic!("{step:?}") };
    assert_eq!(set["spec"]["suspend"], false);
    let pod = &set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"];
    assert_eq!(pod["nodeSelector"], json!({ "gpu": "h100" }));
    // It has no queue: its own switch stops it.
    world.world.job_set(&json!({ "suspend": false }), &json!({}));
    world.world.pods(10, "a", "on-demand");
    world.order(0, 20);
    let (_, step, _) = world.observe(100, &silence);
    let Some(RunStep::Apply(set)) = step else { panic!("{step:?}") };
    assert_eq!(set["spec"]["suspend"], true);
}

#[test]
fn what_a_borrowing_run_would_get_is_shown_in_recommend() {
    let mut world = BorrowingWorld::new();
    world.world.run["spec"]["mode"] = json!("Recommend");
    world.order(4, 0);
    let (report, step, _) = world.observe(5, &HeartbeatAnswer::NotRequested);
    assert_eq!(step, None);
    let shown = "False Recommending: pool h100 would lend it 4 accelerators";
    assert_eq!(condition(&report.status, "PlacementApplied"), shown);
    assert!(!report.borrower.unwrap().acts);
    assert_eq!(report.status.loan, None);
}
