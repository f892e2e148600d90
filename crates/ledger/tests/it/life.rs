//! A table from its first file to its last: merged, erased, expired, vacuumed, read from a checkpoint.

use crate::entries::{block_on, close, parties};
use flyball_core::units::{Micros, Timestamp};
use flyball_ledger::journal::{FolderDisk, Journal, SharedJournal, lock};
use flyball_ledger::rows::Rows;
use flyball_ledger::ship::Shipper;
use flyball_ledger::source::UsageBatch;
use flyball_ledger::store::{FolderStore, PutOutcome, Store as _};
use flyball_ledger::table::{
    ERASED, KEEP_REMOVED, MergeSpan, TableLog, commit_inbox, erase, expire, merge, read_all, vacuum,
};
use flyball_resources::usage::{GPU_TIME, GpuTimeRecord, USAGE, UsageEntry, usage_measure as of};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// An hour of UTC.
const START: Timestamp = Timestamp::from_millis(1_795_003_200_000);

fn minutes(after: u64) -> Timestamp {
    START.saturating_add(Micros::from_minutes(after))
}

/// A process with a journal in a folder.
pub(crate) struct Writer {
    journal: SharedJournal<FolderDisk>,
    shipper: Shipper<FolderDisk>,
}

impl Writer {
    pub(crate) fn new(folder: &Path, source: &str) -> Self {
        let disk = FolderDisk::open(folder).unwrap();
        let journal = Journal::new(disk.clone(), &USAGE, source.parse().unwrap(), 7);
        let journal = Arc::new(Mutex::new(journal));
        let shipper = Shipper::new(Arc::clone(&journal), disk, 7);
        Self { journal, shipper }
    }

    /// Requests of each of these Tenants, so many, and then a batch in the inbox.
    pub(crate) fn batch(
        &mut self,
        store: &FolderStore,
        tenants: &[&str],
        count: u64,
        at: Timestamp,
    ) {
        for (place, tenant) in tenants.iter().enumerate() {
            for number in 0..count {
                let request = place as u64 * count + number;
                lock(&self.journal).append(&close(request, tenant, "key-1", at)).unwrap();
            }
        }
        lock(&self.journal).rotate();
        block_on(self.shipper.ship(store, at)).unwrap();
    }
}

fn rows(store: &FolderStore) -> Rows {
    let mut log = TableLog::new(&USAGE);
    block_on(async {
        log.refresh(store).await.unwrap();
        read_all(store, &log).await.unwrap()
    })
}

#[test]
fn a_journal_goes_when_the_table_has_it_and_not_before() {
    let folder = tempfile::tempdir().unwrap();
    let store = FolderStore::open(folder.path().join("store")).unwrap();
    let mut writer = Writer::new(&folder.path().join("journal"), "gateway-a");
    writer.batch(&store, &["ml/a", "ml/b"], 5, minutes(1));
    let segments = || {
        let files = std::fs::read_dir(folder.path().join("journal")).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".segment")).count()
    };
    assert_eq!(segments(), 1);
    assert!(rows(&store).is_empty(), "nothing counts before it is committed");
    let mut log = TableLog::new(&USAGE);
    let committed = block_on(commit_inbox(&store, &mut log, minutes(2))).unwrap();
    assert_eq!((committed.files, committed.rows, log.version()), (1, 2, Some(0)));
    assert_eq!(segments(), 1, "nobody saw the commit yet");
    block_on(writer.shipper.ship(&store, minutes(3))).unwrap();
    assert_eq!((segments(), writer.shipper.is_settled()), (0, true));
    assert_eq!(rows(&store).sums()[of::REQUESTS], 10);
    let again = block_on(commit_inbox(&store, &mut log, minutes(4))).unwrap();
    assert_eq!((again.files, log.version()), (0, Some(0)), "the inbox has it still");
}

#[test]
fn an_hour_that_is_over_becomes_one_file_with_the_same_sums() {
    let folder = tempfile::tempdir().unwrap();
    let store = FolderStore::open(folder.path().join("store")).unwrap();
    let mut log = TableLog::new(&USAGE);
    for source in ["gateway-a", "gateway-b"] {
        let mut writer = Writer::new(&folder.path().join(source), source);
        for at in [1, 6, 11, 62] {
            writer.batch(&store, &["ml/a", "ml/b"], 4, minutes(at));
        }
    }
    block_on(commit_inbox(&store, &mut log, minutes(63))).unwrap();
    let before = rows(&store);
    assert_eq!((before.len(), log.files().count()), (16, 8));
    let merged =
        |log: &mut TableLog, at| block_on(merge(&store, log, MergeSpan::Hour, at)).unwrap();
    assert_eq!(merged(&mut log, minutes(69)), 0, "what comes late may still come");
    assert_eq!(merged(&mut log, minutes(71)), 6);
    assert_eq!(merged(&mut log, minutes(72)), 0, "the other hour is not over");
    let after = rows(&store);
    assert_eq!(after.sums(), before.sums());
    assert_eq!((after.len(), log.files().count()), (2 + 4, 3));
    // A late batch of an hour that was merged.
    let mut late = Writer::new(&folder.path().join("late"), "gateway-c");
    late.batch(&store, &["ml/a"], 1, minutes(2));
    block_on(commit_inbox(&store, &mut log, minutes(73))).unwrap();
    assert_eq!(merged(&mut log, minutes(74)), 2);
    assert_eq!(rows(&store).sums()[of::REQUESTS], before.sums()[of::REQUESTS] + 1);
    // The day comes to one file.
    let day = minutes(2 * 24 * 60);
    assert_eq!(block_on(merge(&store, &mut log, MergeSpan::Day, day)).unwrap(), 3);
    assert_eq!((rows(&store).len(), log.files().count()), (4, 1));
}

#[test]
fn a_tenant_is_erased_with_all_below_it_and_sums_stay() {
    let folder = tempfile::tempdir().unwrap();
    let store = FolderStore::open(folder.path().join("store")).unwrap();
    let mut log = TableLog::new(&USAGE);
    let mut writer = Writer::new(&folder.path().join("journal"), "gateway-a");
    writer.batch(&store, &["ml/org", "ml/org/team", "ml/organ", "ml/a"], 3, minutes(1));
    writer.batch(&store, &["ml/b"], 3, minutes(6));
    block_on(commit_inbox(&store, &mut log, minutes(7))).unwrap();
    let before = rows(&store).sums();
    assert_eq!(block_on(erase(&store, &mut log, "ml/org", minutes(8))).unwrap(), 1);
    assert_eq!(block_on(erase(&store, &mut log, "ml/org", minutes(9))).unwrap(), 0);
    let after = rows(&store);
    assert_eq!(after.sums(), before);
    let mut tenants: Vec<String> = after.iter().map(|(key, _)| key.texts[0].to_string()).collect();
    tenants.sort_unstable();
    assert_eq!(tenants, [ERASED, "ml/a", "ml/b", "ml/organ"]);
    let keys = after.iter().filter(|(key, _)| &*key.texts[0] == ERASED);
    assert!(keys.into_iter().all(|(key, _)| key.texts[1].is_empty()));
    assert_eq!(parties("a", "b").tenant, "a");
}

#[test]
fn old_files_leave_the_table_and_later_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = FolderStore::open(folder.path().join("store")).unwrap();
    let mut log = TableLog::new(&USAGE);
    let mut writer = Writer::new(&folder.path().join("journal"), "gateway-a");
    writer.batch(&store, &["ml/a"], 1, minutes(1));
    writer.batch(&store, &["ml/a"], 1, minutes(61));
    block_on(commit_inbox(&store, &mut log, minutes(62))).unwrap();
    let now = minutes(100);
    assert_eq!(block_on(expire(&store, &mut log, minutes(5), now)).unwrap(), 1);
    assert_eq!(block_on(expire(&store, &mut log, minutes(5), now)).unwrap(), 0);
    assert_eq!(rows(&store).sums()[of::REQUESTS], 1);
    // A batch that nobody has committed yet, and one that nobody ever will.
    writer.batch(&store, &["ml/a"], 1, minutes(101));
    let left = "usage/merged/1-left.parquet";
    block_on(store.put_new(left, "left by who died".into())).unwrap();
    let files = || block_on(store.list("usage/")).unwrap().len();
    let before = files();
    let soon = |log: &mut TableLog, now| block_on(vacuum(&store, log, KEEP_REMOVED, now)).unwrap();
    assert_eq!(soon(&mut log, now), 0, "a reader may still be at it");
    // Files have the time of this machine, which is far from that of the rows.
    let years = Timestamp::from_millis(4_000_000_000_000);
    assert_eq!(soon(&mut log, years), 2);
    assert_eq!((files(), soon(&mut log, years)), (before - 2, 0));
    assert_eq!(block_on(commit_inbox(&store, &mut log, years)).unwrap().files, 1);
}

#[test]
fn a_reader_that_begins_at_the_checkpoint_sees_what_one_sees_that_reads_all() {
    let folder = tempfile::tempdir().unwrap();
    let store = FolderStore::open(folder.path().join("store")).unwrap();
    let mut log = TableLog::new(&USAGE);
    let mut writer = Writer::new(&folder.path().join("journal"), "gateway-a");
    for at in 0..203 {
        writer.batch(&store, &["ml/a"], 1, minutes(at));
        block_on(commit_inbox(&store, &mut log, minutes(at))).unwrap();
    }
    block_on(expire(&store, &mut log, minutes(10), minutes(204))).unwrap();
    let last = block_on(store.get("usage/_delta_log/_last_checkpoint")).unwrap().unwrap();
    assert!(last.starts_with(b"{\"version\":200"), "{last:?}");
    let read = |log: &mut TableLog| {
        block_on(log.refresh(&store)).unwrap();
        let files: Vec<String> = log.files().map(|file| file.path.clone()).collect();
        (log.version(), files, log.committed(&"gateway-a".parse().unwrap()))
    };
    let mut fresh = TableLog::new(&USAGE);
    let seen = read(&mut fresh);
    assert_eq!(seen, read(&mut log));
    // Two buckets of five minutes had ended.
    assert_eq!((seen.1.len(), seen.2), (203 - 10, 203));
    // Without the hint, and with one that leads nowhere, it is read from its beginning.
    for wrong in [None, Some("{\"version\":17,\"size\":1}"), Some("nonsense")] {
        match wrong {
            None => block_on(store.delete("usage/_delta_log/_last_checkpoint")).unwrap(),
            Some(text) => {
                block_on(store.put("usage/_delta_log/_last_checkpoint", text.into())).unwrap();
            }
        }
        assert_eq!(read(&mut TableLog::new(&USAGE)), seen, "{wrong:?}");
    }
}

#[test]
fn a_broken_file_holds_up_its_source_and_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let store = FolderStore::open(folder.path().join("store")).unwrap();
    let mut log = TableLog::new(&USAGE);
    let bad = UsageBatch { source: "gateway-z".parse().unwrap(), sequence: 1 };
    let path = format!("usage/{}", bad.path());
    assert_eq!(block_on(store.put_new(&path, "x".into())).unwrap(), PutOutcome::Created);
    let mut writer = Writer::new(&folder.path().join("journal"), "gateway-a");
    writer.batch(&store, &["ml/a"], 2, minutes(1));
    let committed = block_on(commit_inbox(&store, &mut log, minutes(2))).unwrap();
    assert_eq!((committed.files, committed.refused.len()), (1, 1));
    assert!(committed.refused[0].to_string().starts_with("inbox/gateway-z-0000000001.parquet: "));
    assert!(!committed.refused[0].may_pass());
    assert_eq!(rows(&store).sums()[of::REQUESTS], 2);
}

#[test]
fn a_table_that_somebody_newer_wrote_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = FolderStore::open(folder.path().join("store")).unwrap();
    let newer = "{\"protocol\":{\"minReaderVersion\":3,\"minWriterVersion\":7}}\n";
    let path = "usage/_delta_log/00000000000000000000.json";
    block_on(store.put_new(path, newer.into())).unwrap();
    let mut log = TableLog::new(&USAGE);
    let refused = block_on(commit_inbox(&store, &mut log, minutes(1))).unwrap_err();
    assert!(refused.to_string().contains("reader 3 and writer 7"), "{refused}");
    assert!(!refused.may_pass());
}

#[test]
fn gpu_time_has_a_table_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let store = FolderStore::open(folder.path().join("store")).unwrap();
    let disk = FolderDisk::open(folder.path().join("journal")).unwrap();
    let mut journal = Journal::new(disk.clone(), &GPU_TIME, "operator-a".parse().unwrap(), 7);
    for used_for in ["useful", "starting", "useful"] {
        let record = GpuTimeRecord {
            pool: "h100",
            used_for,
            started: minutes(0),
            ended: minutes(1),
            gpu_micros: 8 * 60_000_000,
            ..Default::default()
        };
        journal.append(&UsageEntry::GpuTime(record)).unwrap();
    }
    journal.rotate();
    let journal = Arc::new(Mutex::new(journal));
    block_on(Shipper::new(journal, disk, 7).ship(&store, minutes(2))).unwrap();
    let mut log = TableLog::new(&GPU_TIME);
    block_on(commit_inbox(&store, &mut log, minutes(3))).unwrap();
    let rows = block_on(read_all(&store, &log)).unwrap();
    let place = GPU_TIME.text("x_UsedFor").unwrap();
    let found: Vec<(String, i64)> =
        rows.iter().map(|(key, measures)| (key.texts[place].to_string(), measures[0])).collect();
    assert_eq!(found, [("starting".to_owned(), 480_000_000), ("useful".to_owned(), 960_000_000)]);
}

#[test]
fn a_folder_takes_a_name_once_whoever_comes_at_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    let stores: Vec<FolderStore> =
        (0..4).map(|_| FolderStore::open(folder.path()).unwrap()).collect();
    let put = |store: &FolderStore, name: usize, who: usize| {
        block_on(store.put_new(&format!("a/{name}"), format!("by {who}").into())).unwrap()
    };
    let created: Vec<Vec<bool>> = std::thread::scope(|scope| {
        let threads: Vec<_> = stores
            .iter()
            .enumerate()
            .map(|(who, store)| {
                scope.spawn(move || {
                    (0..40).map(|name| put(store, name, who) == PutOutcome::Created).collect()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for name in 0..40 {
        let by: Vec<usize> = (0..4).filter(|who| created[*who].get(name) == Some(&true)).collect();
        assert_eq!(by.len(), 1, "{name}");
        let text = block_on(stores[0].get(&format!("a/{name}"))).unwrap().unwrap();
        assert_eq!(text, format!("by {}", by[0]));
    }
    let listed = block_on(stores[0].list("a/1")).unwrap();
    assert_eq!(listed.len(), 11, "1 and 10 to 19, and no half ones");
    assert_eq!(block_on(stores[0].get("a/none")).unwrap(), None);
    block_on(stores[0].delete("a/none")).unwrap();
}
