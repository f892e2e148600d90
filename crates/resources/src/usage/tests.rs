use super::*;
use proptest::prelude::*;

fn close() -> UsageRecord<'static> {
    UsageRecord {
        request: 4_711,
        parties: UsageParties {
            tenant: "ml/org/team-search",
            key: "fb-8f3a91c2",
            model: "llama-70b",
            variant: "h100-tp4",
            class: UsageClass::Normal,
        },
        started: Timestamp::from_millis(1_795_000_000_000),
        ended: Timestamp::from_millis(1_795_000_004_321),
        input_tokens: 1_812,
        cached_tokens: 1_024,
        output_tokens: 345,
        estimated: false,
        judged: Judged::Met,
        cost_units: 3_340,
        list_pico: Some(1_234_567_890),
        currency: "USD",
    }
}

fn bytes(entry: &UsageEntry<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    entry.encode(&mut bytes);
    bytes
}

#[test]
fn a_request_of_usual_names_has_less_than_a_hundred_bytes() {
    let length = bytes(&UsageEntry::Close(close())).len();
    assert!(length < 100, "{length}");
}

#[test]
fn places_of_measures_are_those_of_the_tables() {
    let usage = |place: usize| USAGE.measures[place].name;
    assert_eq!(usage(usage_measure::UNCLOSED), "x_RequestsUnclosed");
    assert_eq!(usage(usage_measure::COST_UNITS_MET), "x_CostUnitsMet");
    assert_eq!(USAGE.measure("ListCost"), Some(usage_measure::LIST_COST));
    assert_eq!(GPU_TIME.measure("ListCost"), Some(gpu_time_measure::LIST_COST));
    assert_eq!(USAGE.text("SubAccountId"), Some(0));
    for table in LedgerTable::ALL {
        assert!(table.text("x_Source").is_some() && table.text("BillingCurrency").is_some());
        assert!(table.measure("x_UnsureMicros").is_some());
        assert!(table.texts.len() < 64 && table.measures.len() < 64, "what a row may have");
    }
}

#[test]
fn bytes_cut_anywhere_or_with_more_behind_are_refused() {
    let whole = bytes(&UsageEntry::Close(close()));
    for end in 0..whole.len() {
        assert!(UsageEntry::decode(&whole[..end]).is_err(), "{end}");
    }
    let longer = [whole.as_slice(), &[0]].concat();
    assert_eq!(UsageEntry::decode(&longer), Err(UsageProblem::Rest(1)));
}

#[test]
fn what_is_too_large_is_cut_when_written_and_refused_when_read() {
    let long = "ü".repeat(MAX_NAME);
    let parties = UsageParties { tenant: &long, ..close().parties };
    let large = UsageRecord { parties, output_tokens: u64::MAX, ..close() };
    let bytes = bytes(&UsageEntry::Close(large));
    let Ok(UsageEntry::Close(back)) = UsageEntry::decode(&bytes) else { panic!("no request") };
    assert_eq!((back.output_tokens, back.parties.tenant.len()), (MAX_COUNT, MAX_NAME));
    assert_eq!(UsageEntry::decode(&[VERSION + 1, 2]), Err(UsageProblem::Version(VERSION + 1)));
    assert_eq!(
        UsageEntry::decode(&[VERSION, 9]),
        Err(UsageProblem::Value("the kind of the entry"))
    );
}

proptest! {
    #[test]
    fn every_entry_comes_back(
        numbers in proptest::collection::vec(0..=MAX_COUNT, 6),
        names in proptest::collection::vec("[a-zü/-]{0,40}", 7),
        price in proptest::option::of(any::<i64>()),
        measures in proptest::collection::vec(any::<i64>(), 0..20),
        flags in 0u8..12,
    ) {
        let started = Timestamp::from_micros(numbers[0]);
        let ended = Timestamp::from_micros(numbers[0] + numbers[1]);
        let parties = UsageParties {
            tenant: &names[0], key: &names[1], model: &names[2], variant: &names[3],
            class: UsageClass::ALL[usize::from(flags % 4)],
        };
        let judged = [Judged::Not, Judged::Met, Judged::Missed][usize::from(flags / 4)];
        let currency = if price.is_some() { "USD" } else { "" };
        let entries = [
            UsageEntry::Begin(JournalStart { table: "usage", source: &names[4], sequence: numbers[2], boot: u64::MAX }),
            UsageEntry::Open(UsageOpen { request: numbers[3], parties, started }),
            UsageEntry::Close(UsageRecord {
                request: numbers[3], parties, started, ended, judged, currency,
                input_tokens: numbers[2], cached_tokens: numbers[4], output_tokens: numbers[5],
                estimated: flags % 2 == 0, cost_units: numbers[1], list_pico: price,
            }),
            UsageEntry::GpuTime(GpuTimeRecord {
                pool: &names[0], accelerator: &names[1], purchase: &names[2], used_for: &names[3],
                resource: &names[4], variant: &names[5], tenant: &names[6], started, ended,
                gpu_micros: numbers[2], replica_micros: numbers[3], steps: numbers[4],
                repeated_steps: numbers[5], list_pico: price, currency,
            }),
            UsageEntry::Ended(numbers[5]),
            UsageEntry::Row(UsageRow {
                start: -5, end: i64::MAX, estimated: flags == 3,
                texts: names.iter().map(String::as_str).collect(), measures,
            }),
        ];
        for entry in entries {
            let bytes = bytes(&entry);
            prop_assert_eq!(UsageEntry::decode(&bytes), Ok(entry));
        }
    }

    #[test]
    fn hostile_bytes_are_refused_or_read_but_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = UsageEntry::decode(&bytes);
        let mut known = vec![VERSION, bytes.first().map_or(0, |byte| byte % 6)];
        known.extend(bytes);
        let _ = UsageEntry::decode(&known);
    }
}
