//! Reads a bill in FOCUS 1.0 to 1.4.

use super::names::resource_name;
use crate::civil;
use crate::money::PicoDollars;
use flyball_core::units::Timestamp;
use std::collections::BTreeMap;
use thiserror::Error;

/// How many problems are listed; all are counted.
const LISTED: usize = 100;

/// Which version a file looks like, by the columns that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FocusVersion {
    V1_0,
    V1_1,
    V1_2,
    V1_3,
    V1_4,
}

/// One charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BillLine {
    pub line: u64,
    /// As [`resource_name`] has it.
    pub resource: Option<String>,
    pub from: Timestamp,
    pub to: Timestamp,
    /// Usage, Purchase, Tax, Credit or Adjustment.
    pub category: String,
    pub is_correction: bool,
    /// What is on the invoice.
    pub billed: PicoDollars,
    /// The same with commitments spread over their time: what a node-hour really cost.
    pub effective: PicoDollars,
    /// Where it runs: `HostProviderName`, or `ProviderName` before 1.3.
    pub host_provider: Option<String>,
    /// Who offers it: `ServiceProviderName`, or `PublisherName` before 1.3, because on a marketplace that is not the cloud.
    pub service_provider: Option<String>,
    pub service: Option<String>,
}

/// Why a line does not count.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {column}: {what}")]
pub struct BillProblem {
    pub line: u64,
    pub column: &'static str,
    pub what: String,
}

/// What was read of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BillFile {
    pub version: FocusVersion,
    pub lines: Vec<BillLine>,
    /// Lines that could not be read, and so are in no sum.
    pub unread: u64,
    /// The first of them.
    pub problems: Vec<BillProblem>,
}

/// Reads a file. A line that cannot be read is counted and left out; a file without the columns is refused.
pub fn import(text: &str) -> Result<BillFile, BillProblem> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let broken = |error: csv::Error| BillProblem {
        line: error.position().map_or(0, csv::Position::line),
        column: "",
        what: error.to_string(),
    };
    let header = reader.headers().map_err(broken)?.clone();
    let places: BTreeMap<&str, usize> =
        header.iter().enumerate().map(|(at, name)| (name, at)).collect();
    for column in [
        "ChargePeriodStart",
        "ChargePeriodEnd",
        "BilledCost",
        "EffectiveCost",
        "ChargeCategory",
        "BillingCurrency",
    ] {
        if !places.contains_key(column) {
            return Err(BillProblem {
                line: 1,
                column,
                what: "the file has no such column".to_owned(),
            });
        }
    }
    let version = version(&places);
    let mut file = BillFile { version, lines: Vec::new(), unread: 0, problems: Vec::new() };
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(broken)? {
        let line = record.position().map_or(0, csv::Position::line);
        match (Cells { places: &places, record: &record, line }).line(version) {
            Ok(line) => file.lines.push(line),
            Err(problem) => {
                file.unread += 1;
                if file.problems.len() < LISTED {
                    file.problems.push(problem);
                }
            }
        }
    }
    Ok(file)
}

/// By what each version added or took away.
fn version(places: &BTreeMap<&str, usize>) -> FocusVersion {
    let has = |name: &str| places.contains_key(name);
    match () {
        () if has("ServiceProviderName") && !has("ProviderName") => FocusVersion::V1_4,
        () if has("ServiceProviderName") || has("AllocatedMethodId") => FocusVersion::V1_3,
        () if has("InvoiceId") || has("PricingCurrency") => FocusVersion::V1_2,
        () if has("CapacityReservationId") || has("ServiceSubcategory") => FocusVersion::V1_1,
        () => FocusVersion::V1_0,
    }
}

struct Cells<'a> {
    places: &'a BTreeMap<&'a str, usize>,
    record: &'a csv::StringRecord,
    line: u64,
}

impl Cells<'_> {
    fn line(&self, version: FocusVersion) -> Result<BillLine, BillProblem> {
        let currency = self.required("BillingCurrency")?;
        if currency != "USD" {
            return Err(self.wrong(
                "BillingCurrency",
                format!("`{currency}` is not USD, and no rate is known here"),
            ));
        }
        let (from, to) = (self.time("ChargePeriodStart")?, self.time("ChargePeriodEnd")?);
        if to <= from {
            return Err(self.wrong("ChargePeriodEnd", "is not after ChargePeriodStart".to_owned()));
        }
        let (old_host, old_service) = match version {
            FocusVersion::V1_4 => (None, None),
            _ => (self.text("ProviderName"), self.text("PublisherName")),
        };
        Ok(BillLine {
            line: self.line,
            resource: self.text("ResourceId").map(|id| resource_name(&id)),
            from,
            to,
            category: self.required("ChargeCategory")?,
            is_correction: self.text("ChargeClass").is_some(),
            billed: self.money("BilledCost")?,
            effective: self.money("EffectiveCost")?,
            host_provider: self.text("HostProviderName").or(old_host),
            service_provider: self.text("ServiceProviderName").or(old_service),
            service: self.text("ServiceName"),
        })
    }

    fn text(&self, column: &str) -> Option<String> {
        let cell = self.record.get(*self.places.get(column)?)?.trim();
        let null = cell.is_empty() || cell.eq_ignore_ascii_case("null");
        (!null).then(|| cell.to_owned())
    }

    fn required(&self, column: &'static str) -> Result<String, BillProblem> {
        self.text(column).ok_or_else(|| self.wrong(column, "is null".to_owned()))
    }

    fn time(&self, column: &'static str) -> Result<Timestamp, BillProblem> {
        let text = self.required(column)?;
        civil::read_time(&text).ok_or_else(|| self.wrong(column, format!("`{text}` is no time")))
    }

    fn money(&self, column: &'static str) -> Result<PicoDollars, BillProblem> {
        let text = self.required(column)?;
        // Some exports write the sign of an exponent, which the standard forbids; the number is clear.
        PicoDollars::read(&text.replace("E+", "E").replace("e+", "e"))
            .map_err(|error| self.wrong(column, error.to_string()))
    }

    fn wrong(&self, column: &'static str, what: String) -> BillProblem {
        BillProblem { line: self.line, column, what }
    }
}
