//! The record as text, as it stands in the API server. Pure.

use flyball_quota::{Amount, BankRecord, BudgetKey, BudgetRecord, GatewayId, PeriodId, Scope};
use serde::{Deserialize, Serialize};

/// An object of the API server has at most 1 MiB. With paths of 40 bytes this is about 8,000 budgets.
pub(crate) const LONGEST: usize = 900 << 10;

const VERSION: u32 = 1;

/// Why a record is of no use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordProblem {
    /// A later version wrote it.
    #[error(
        "the record of budgets has version {0}; this operator reads {VERSION}; hint: run the version that wrote it"
    )]
    Version(u32),
    /// It is not what an operator wrote.
    #[error(
        "the record of budgets is damaged: {0}; hint: restore it, or delete it to reset all budgets"
    )]
    Damaged(String),
    /// It does not fit.
    #[error(
        "the record of budgets has {0} bytes, more than {LONGEST}; hint: use fewer Tenants with budgets"
    )]
    TooLong(usize),
}

#[derive(Serialize, Deserialize)]
struct Form {
    version: u32,
    term: u64,
    gateways: Vec<String>,
    budgets: Vec<Row>,
}

/// Path, name, period; base, gone, written off, mark. Amounts are texts: many programs read numbers as floats.
#[derive(Serialize, Deserialize)]
struct Row(String, String, u64, String, String, String, String);

#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// The text of a record.
pub(crate) fn write(record: &BankRecord) -> Result<String, RecordProblem> {
    let row = |(key, state): (&BudgetKey, &BudgetRecord)| {
        let text = |amount: Amount| amount.get().to_string();
        Row(
            key.scope.to_string(),
            key.name.to_string(),
            state.period.0,
            text(state.base),
            text(state.gone),
            text(state.written_off),
            text(state.mark),
        )
    };
    let form = Form {
        version: VERSION,
        term: record.term,
        gateways: record.gateways.iter().map(|id| id.as_str().to_owned()).collect(),
        budgets: record.budgets.iter().map(row).collect(),
    };
    let text = serde_json::to_string(&form).map_err(|error| damaged(&error))?;
    if text.len() > LONGEST { Err(RecordProblem::TooLong(text.len())) } else { Ok(text) }
}

/// What a text says.
pub(crate) fn read(text: &str) -> Result<BankRecord, RecordProblem> {
    let Versioned { version } = serde_json::from_str(text).map_err(|error| damaged(&error))?;
    if version != VERSION {
        return Err(RecordProblem::Version(version));
    }
    let form: Form = serde_json::from_str(text).map_err(|error| damaged(&error))?;
    let row = |Row(scope, name, period, base, gone, written_off, mark): &Row| {
        let amount = |text: &String| text.parse().ok().map(Amount::new);
        let key = BudgetKey { scope: Scope::new(scope), name: name.as_str().into() };
        let state = BudgetRecord {
            period: PeriodId(*period),
            base: amount(base)?,
            gone: amount(gone)?,
            written_off: amount(written_off)?,
            mark: amount(mark)?,
        };
        Some((key, state))
    };
    let budgets = form.budgets.iter().map(row).collect::<Option<_>>();
    let wrong = || RecordProblem::Damaged("an amount is not a number".to_owned());
    Ok(BankRecord {
        term: form.term,
        budgets: budgets.ok_or_else(wrong)?,
        gateways: form.gateways.iter().map(|id| GatewayId::new(id)).collect(),
    })
}

fn damaged(error: &serde_json::Error) -> RecordProblem {
    RecordProblem::Damaged(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(budgets: usize) -> BankRecord {
        let budget = |number: usize| {
            let name = format!("ml/organisation-{number}/a-team-of-{number}");
            let key = BudgetKey { scope: Scope::new(&name), name: "month".into() };
            let state = BudgetRecord {
                period: PeriodId(24_322),
                base: Amount::new(u128::MAX),
                gone: Amount::new(7),
                written_off: Amount::ZERO,
                mark: Amount::new(1 << 70),
            };
            (key, state)
        };
        BankRecord {
            term: 3,
            budgets: (0..budgets).map(budget).collect(),
            gateways: [GatewayId::new("gateway-0/pod-1f")].into(),
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record = record(3);
        assert_eq!(read(&write(&record).unwrap()), Ok(record));
    }

    #[test]
    fn what_no_operator_of_this_version_wrote_is_refused_and_not_taken_for_nothing() {
        for text in ["", "{}", "[]", "{\"version\":1}", "{\"version\":-1}"] {
            assert!(matches!(read(text), Err(RecordProblem::Damaged(_))), "{text}");
        }
        assert_eq!(read("{\"version\":2,\"other\":1}"), Err(RecordProblem::Version(2)));
        let text = write(&record(1)).unwrap();
        assert!(read(&text.replace("\"7\"", "\"-7\"")).is_err());
        assert!(read(&text[..text.len() - 2]).is_err());
    }

    #[test]
    fn a_record_that_no_object_holds_is_not_written() {
        let text = write(&record(5_000)).unwrap();
        assert!(text.len() < LONGEST, "{}", text.len());
        assert!(matches!(write(&record(20_000)), Err(RecordProblem::TooLong(_))));
    }
}
