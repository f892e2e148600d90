//! Other people's programs read what we wrote: delta-rs (its Python package) says which files count, and `DuckDB` adds them up.

use crate::entries::block_on;
use crate::life::Writer;
use flyball_core::units::{Micros, Timestamp};
use flyball_ledger::store::FolderStore;
use flyball_ledger::table::{MergeSpan, TableLog, commit_inbox, erase, merge, read_all};
use flyball_resources::usage::{USAGE, usage_measure as of};
use std::process::Command;

/// A Python with `deltalake` and `duckdb`; without it the test says that it did nothing.
const PYTHON: &str = "FLYBALL_LEDGER_PYTHON";

const SCRIPT: &str = r#"
import sys, json
try:
    import deltalake, duckdb
except ImportError as error:
    print("absent", error)
    sys.exit(77)
table = deltalake.DeltaTable(sys.argv[1])
files = table.file_uris()
sums = "sum(x_Requests), sum(x_InputTokens), sum(x_OutputTokens), sum(ListCost), count(distinct SubAccountId), cast(min(ChargePeriodStart) as varchar)"
duck = duckdb.connect()
duck.execute("set timezone='UTC'")
by_duckdb = duck.execute(f"select {sums} from read_parquet({files!r})").fetchall()[0]
names = [row[0] for row in duck.execute(f"describe select * from read_parquet({files!r})").fetchall()]
assert names == [field.name for field in table.schema().fields], "columns of the log are those of the files"
by_deltalake = deltalake.QueryBuilder().register("t", table).execute(f"select {sums} from t").read_all()
rows = [[str(cell) for cell in by_duckdb[:5]]]
rows.append([str(by_deltalake.column(place)[0].as_py()) for place in range(5)])
history = [one["operation"] for one in table.history()]
txn = table.transaction_version("gateway-a")
print(json.dumps({"rows": rows, "version": table.version(), "files": len(files), "txn": txn, "history": history,
    "start": str(by_duckdb[5]), "by": [deltalake.__version__, duckdb.__version__]}))
"#;

#[test]
#[expect(clippy::print_stderr, reason = "a test that does nothing says so")]
fn delta_rs_and_duckdb_read_the_same_sums() {
    let python = std::env::var(PYTHON).unwrap_or_else(|_| "python3".to_owned());
    let folder = tempfile::tempdir().unwrap();
    let log = written(folder.path());
    let table = folder.path().join("store/usage");
    let output = match Command::new(&python).arg("-c").arg(SCRIPT).arg(&table).output() {
        Ok(output) => output,
        Err(error) => return eprintln!("skipped: {python} cannot be started: {error}"),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.code() == Some(77) {
        assert!(std::env::var(PYTHON).is_err(), "{PYTHON} names one without the packages: {said}");
        return eprintln!("skipped: {python} has no deltalake and duckdb ({})", said.trim());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let read: serde_json::Value = serde_json::from_str(said.trim()).unwrap();
    let store = FolderStore::open(folder.path().join("store")).unwrap();
    let sums = block_on(read_all(&store, &log)).unwrap().sums();
    let money = sums[of::LIST_COST];
    let money = format!("{}.{:012}", money / 1_000_000_000_000, money % 1_000_000_000_000);
    let ours = [
        sums[of::REQUESTS].to_string(),
        sums[of::INPUT_TOKENS].to_string(),
        sums[of::OUTPUT_TOKENS].to_string(),
        money,
        "3".to_owned(),
    ];
    for theirs in read["rows"].as_array().unwrap() {
        assert_eq!(theirs, &serde_json::json!(ours));
    }
    assert_eq!(read["version"], log.version().unwrap());
    assert_eq!(read["files"], log.files().count());
    assert_eq!(read["txn"], 140);
    assert!(read["start"].as_str().unwrap().starts_with("2026-11-18 04:00:00"), "{read}");
    eprintln!("read by deltalake and duckdb: {said}");
}

/// A table with a checkpoint, a merged hour and an erased Tenant.
fn written(folder: &std::path::Path) -> TableLog {
    let store = FolderStore::open(folder.join("store")).unwrap();
    let mut log = TableLog::new(&USAGE);
    let mut writer = Writer::new(&folder.join("journal"), "gateway-a");
    let start = Timestamp::from_millis(1_794_974_400_000);
    let at = |minutes| start.saturating_add(Micros::from_minutes(minutes));
    for number in 0..140 {
        writer.batch(&store, &["ml/a", "ml/b", "ml/c"], 7, at(5 * number));
        block_on(commit_inbox(&store, &mut log, at(5 * number + 1))).unwrap();
    }
    for _ in 0..3 {
        assert_eq!(block_on(merge(&store, &mut log, MergeSpan::Hour, at(710))).unwrap(), 12);
    }
    assert!(block_on(erase(&store, &mut log, "ml/b", at(711))).unwrap() > 100);
    log
}
