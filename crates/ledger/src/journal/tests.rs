use super::*;
use flyball_core::units::Timestamp;
use flyball_resources::usage::{USAGE, UsageOpen, UsageParties, UsageRecord, usage_measure as of};
use std::io::ErrorKind;

fn journal(disk: FolderDisk) -> Journal<FolderDisk> {
    Journal::new(disk, &USAGE, "gateway-a".parse().unwrap(), 7)
}

fn open(request: u64) -> UsageEntry<'static> {
    UsageEntry::Open(UsageOpen { request, ..Default::default() })
}

fn close(request: u64) -> UsageEntry<'static> {
    let parties = UsageParties { tenant: "ml/team", model: "m", ..Default::default() };
    let ended = Timestamp::from_millis(1);
    UsageEntry::Close(UsageRecord {
        request,
        parties,
        ended,
        output_tokens: 10,
        ..Default::default()
    })
}

fn requests(rows: &Rows) -> i128 {
    rows.sums()[of::REQUESTS]
}

fn segment(disk: &FolderDisk, batch: &UsageBatch) -> Segment {
    let mut segment = Segment::new(batch.clone(), &USAGE);
    segment.follow(&mut disk.clone()).unwrap();
    segment
}

/// A disk on which so many bytes have room.
#[derive(Debug)]
struct Small(FolderDisk, std::rc::Rc<std::cell::Cell<usize>>);

impl Disk for Small {
    fn create(&mut self, name: &str) -> io::Result<()> {
        self.0.create(name)
    }
    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let fits = bytes.len().min(self.1.get());
        self.1.set(self.1.get() - fits);
        self.0.append(name, &bytes[..fits])?;
        if fits < bytes.len() { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
    fn truncate(&mut self, name: &str, length: u64) -> io::Result<()> {
        self.0.truncate(name, length)
    }
    fn sync(&mut self, name: &str) -> io::Result<()> {
        self.0.sync(name)
    }
    fn read(&mut self, name: &str, from: u64) -> io::Result<Vec<u8>> {
        self.0.read(name, from)
    }
    fn list(&mut self) -> io::Result<Vec<String>> {
        self.0.list()
    }
    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }
}

#[test]
fn an_end_is_with_the_kernel_when_append_returns_and_an_opening_with_the_next_flush() {
    let folder = tempfile::tempdir().unwrap();
    let disk = FolderDisk::open(folder.path()).unwrap();
    let mut journal = journal(disk.clone());
    journal.append(&close(1)).unwrap();
    assert_eq!(requests(segment(&disk, journal.current()).rows()), 1);
    journal.append(&open(2)).unwrap();
    let opened = |journal: &Journal<FolderDisk>| {
        OpenRequests::of(&mut disk.clone(), &[journal.current().clone()]).unwrap().0.len()
    };
    assert_eq!(opened(&journal), 0);
    journal.flush().unwrap();
    assert_eq!(opened(&journal), 1);
    assert_eq!(journal.to_sync(), ["gateway-a-0000000001.segment"]);
    assert!(journal.to_sync().is_empty());
}

#[test]
fn what_has_no_rows_does_not_end_a_batch() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = journal(FolderDisk::open(folder.path()).unwrap());
    journal.append(&open(1)).unwrap();
    journal.rotate();
    assert_eq!((journal.current().sequence, journal.sealed()), (1, vec![]));
    journal.append(&close(1)).unwrap();
    journal.rotate();
    assert_eq!((journal.current().sequence, journal.sealed().len()), (2, 1));
}

#[test]
fn open_requests_are_carried_and_the_end_in_either_file_counts() {
    let folder = tempfile::tempdir().unwrap();
    let mut disk = FolderDisk::open(folder.path()).unwrap();
    let mut journal = journal(disk.clone());
    [open(1), open(2), open(3), close(2)].iter().for_each(|entry| journal.append(entry).unwrap());
    journal.rotate();
    // Its end comes before it is carried.
    journal.append(&close(3)).unwrap();
    let batches = journal.to_carry();
    let open = OpenRequests::of(&mut disk, &batches).unwrap();
    assert!(!journal.is_carried(1));
    journal.write_again(&open).unwrap();
    journal.carried(1);
    assert!(journal.is_carried(1) && journal.to_carry().is_empty());
    journal.forget(1).unwrap();
    let left = leftovers(&mut disk, &"gateway-b".parse().unwrap()).unwrap();
    let batches = &left[&journal.current().source];
    assert_eq!(batches.len(), 1);
    let open = OpenRequests::of(&mut disk, batches).unwrap();
    assert_eq!(open.0.keys().collect::<Vec<_>>(), [&1]);
    let mut rows = Rows::new(&USAGE);
    open.add_to(&mut rows, &journal.current().source);
    assert_eq!((requests(&rows), rows.sums()[of::UNCLOSED]), (0, 1));
}

#[test]
fn a_full_disk_keeps_entries_in_memory_and_writes_them_once() {
    let folder = tempfile::tempdir().unwrap();
    let disk = FolderDisk::open(folder.path()).unwrap();
    let room = std::rc::Rc::new(std::cell::Cell::new(150));
    let small = Small(disk.clone(), room.clone());
    let mut journal = Journal::new(small, &USAGE, "gateway-a".parse().unwrap(), 7);
    let failed = (0..10).filter(|request| journal.append(&close(*request)).is_err()).count();
    assert!((1..10).contains(&failed), "{failed}");
    let written = requests(segment(&disk, journal.current()).rows());
    assert_eq!(written + requests(journal.unwritten(1).unwrap()), 10);
    assert!(journal.retry().is_err());
    room.set(10_000);
    journal.append(&close(10)).unwrap();
    journal.retry().unwrap();
    journal.retry().unwrap();
    assert_eq!(journal.unwritten(1), None);
    assert_eq!(requests(segment(&disk, journal.current()).rows()), 11);
    // Its end is in a row, and nobody takes it for open.
    journal.append(&open(20)).unwrap();
    journal.flush().unwrap();
    room.set(3);
    assert!(journal.append(&close(20)).is_err());
    let opened = || {
        let batch = UsageBatch { source: "gateway-a".parse().unwrap(), sequence: 1 };
        OpenRequests::of(&mut disk.clone(), &[batch]).unwrap().0.len()
    };
    assert_eq!(opened(), 1);
    room.set(10_000);
    journal.retry().unwrap();
    assert_eq!((opened(), requests(segment(&disk, journal.current()).rows())), (0, 12));
    // What a full disk left of a batch that has ended stays with it.
    room.set(0);
    assert!(journal.append(&close(11)).is_err());
    journal.rotate();
    assert!(journal.append(&close(12)).is_err());
    assert_eq!(requests(journal.unwritten(1).unwrap()), 1);
    assert_eq!(requests(journal.unwritten(2).unwrap()), 1);
}
