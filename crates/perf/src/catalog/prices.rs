//! What accelerators cost: by provider, way of buying, and day.

use super::date::Date;
use super::problems::{CatalogError, Reader};
use super::table;
use flyball_core::ids::AcceleratorId;
use flyball_core::units::{Currency, Gpus, Money, Price};
use serde::Deserialize;
use std::fmt;

/// How the accelerator is bought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PriceKind {
    OnDemand,
    /// Cheaper, and taken away at short notice.
    Spot,
    Reserved1y,
    Reserved3y,
    /// Days to weeks, paid up front.
    ShortReservation,
}

impl PriceKind {
    /// Every way, in the order they are shown.
    pub const ALL: [Self; 5] =
        [Self::OnDemand, Self::Spot, Self::Reserved1y, Self::Reserved3y, Self::ShortReservation];

    /// The word used on the command line and in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OnDemand => "on-demand",
            Self::Spot => "spot",
            Self::Reserved1y => "reserved-1y",
            Self::Reserved3y => "reserved-3y",
            Self::ShortReservation => "short-reservation",
        }
    }

    /// The way of that name, if there is one.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|purchase| purchase.name() == name)
    }
}

impl fmt::Display for PriceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How far a price can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// Undated, old, or the source contradicts itself.
    Low,
    /// From a list that others keep.
    Medium,
    /// From the seller's own list, or written by the user.
    High,
}

impl Confidence {
    pub const ALL: [Self; 3] = [Self::Low, Self::Medium, Self::High];

    /// The word used in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One price of one accelerator.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    pub accelerator: AcceleratorId,
    pub provider: String,
    /// What is ordered, such as an instance type; `any` when the price is the same for all.
    pub sku: String,
    /// How many accelerators one order has.
    pub gpus_per_sku: Gpus,
    /// Where the price holds, in the words of the source.
    pub region: String,
    pub purchase: PriceKind,
    /// For one accelerator and one hour; the median where it varies.
    pub price: Price,
    /// The lowest, where it varies.
    pub low: Option<Price>,
    /// The highest, where it varies.
    pub high: Option<Price>,
    pub as_of: Date,
    pub source: String,
    pub confidence: Confidence,
    pub note: String,
}

/// The columns of prices.csv.
pub(super) const COLUMNS: &[&str] = &[
    "accelerator",
    "provider",
    "sku",
    "gpus_per_sku",
    "region",
    "purchase",
    "usd_per_gpu_hour",
    "usd_min",
    "usd_max",
    "as_of",
    "source",
    "confidence",
    "note",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    accelerator: String,
    provider: String,
    sku: String,
    gpus_per_sku: String,
    region: String,
    purchase: String,
    usd_per_gpu_hour: String,
    usd_min: String,
    usd_max: String,
    as_of: String,
    source: String,
    confidence: String,
    note: String,
}

/// Reads prices.csv. `known` says whether there is an accelerator of that id.
pub(super) fn read(
    file: &str,
    text: &str,
    known: impl Fn(&AcceleratorId) -> bool,
) -> Result<Vec<Offer>, CatalogError> {
    let mut reader = Reader::new(file);
    let mut offers: Vec<Offer> = Vec::new();
    for (line, row) in table::rows::<Row>(&mut reader, text, COLUMNS) {
        reader.line = line;
        let Some(offer) = offer(&mut reader, row) else { continue };
        if !known(&offer.accelerator) {
            let what = format!("accelerator `{}` is not in accelerators.csv", offer.accelerator);
            reader.wrong(what, "add its row there, or correct the id");
        }
        if offers.iter().any(|other| other.is_same_order(&offer)) {
            let what = format!("a second price of {}", offer.order());
            reader.wrong(what, "keep one, or distinguish them by sku");
        }
        offers.push(offer);
    }
    reader.finish(offers)
}

fn offer(reader: &mut Reader<'_>, row: Row) -> Option<Offer> {
    for (key, text) in [("provider", &row.provider), ("sku", &row.sku), ("source", &row.source)] {
        if text.is_empty() {
            reader
                .wrong(format!("{key} is empty"), "write it: a price without it cannot be checked");
        }
    }
    let accelerator = reader.id("accelerator", &row.accelerator);
    let gpus_per_sku = reader.whole("gpus_per_sku", &row.gpus_per_sku);
    let purchase = reader.purchase(&row.purchase);
    let price = reader.usd("usd_per_gpu_hour", &row.usd_per_gpu_hour);
    let end = |reader: &mut Reader<'_>, key: &str, text: &str| {
        if text.is_empty() { None } else { reader.usd(key, text) }
    };
    let low = end(reader, "usd_min", &row.usd_min);
    let high = end(reader, "usd_max", &row.usd_max);
    if low.zip(price).is_some_and(|(low, price)| low > price)
        || high.zip(price).is_some_and(|(high, price)| high < price)
    {
        reader.wrong("the price lies outside usd_min and usd_max", "correct one of the three");
    }
    let as_of = reader.date(&row.as_of);
    let confidence = Confidence::ALL.into_iter().find(|level| level.name() == row.confidence);
    if confidence.is_none() {
        let what = format!("confidence is `{}`", row.confidence);
        reader.wrong(what, "write low, medium or high");
    }
    Some(Offer {
        accelerator: accelerator?,
        provider: row.provider,
        sku: row.sku,
        gpus_per_sku: Gpus::new(gpus_per_sku?),
        region: row.region,
        purchase: purchase?,
        price: price?,
        low,
        high,
        as_of: as_of?,
        source: row.source,
        confidence: confidence?,
        note: row.note,
    })
}

impl Offer {
    /// Whether both price the same thing, so that there can be only one of them.
    pub(super) fn is_same_order(&self, other: &Self) -> bool {
        self.is_same_purchase(other) && self.sku == other.sku
    }

    /// The same but for the sku.
    pub(super) fn is_same_purchase(&self, other: &Self) -> bool {
        self.accelerator == other.accelerator
            && self.provider.eq_ignore_ascii_case(&other.provider)
            && self.purchase == other.purchase
    }

    pub(super) fn order(&self) -> String {
        format!("{} at {}, {}, {}", self.accelerator, self.provider, self.purchase, self.sku)
    }
}

/// What only prices have in their cells.
impl Reader<'_> {
    pub(super) fn id(&mut self, key: &str, text: &str) -> Option<AcceleratorId> {
        match AcceleratorId::new(text) {
            Ok(id) => Some(id),
            Err(_) => {
                let what = format!("{key} is `{text}`");
                self.wrong(what, "write lower-case letters, digits and `-`, as in h100-sxm-80gb");
                None
            }
        }
    }

    pub(super) fn purchase(&mut self, text: &str) -> Option<PriceKind> {
        let purchase = PriceKind::named(text);
        if purchase.is_none() {
            let all = PriceKind::ALL.map(PriceKind::name).join(", ");
            self.wrong(format!("purchase is `{text}`"), format!("write one of {all}"));
        }
        purchase
    }

    pub(super) fn usd(&mut self, key: &str, text: &str) -> Option<Price> {
        let price = usd(text);
        if price.is_none() {
            let mend = "write US dollars for one GPU and hour, as in 2.10, above zero";
            self.wrong(format!("{key} is `{text}`"), mend);
        }
        price
    }

    pub(super) fn date(&mut self, text: &str) -> Option<Date> {
        let date = Date::new(text);
        if date.is_none() {
            self.wrong(format!("as_of is `{text}`"), "write the day as in 2026-08-22");
        }
        date
    }
}

/// Reads a decimal exactly: no float comes between a price list and a bill.
fn usd(text: &str) -> Option<Price> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(decimals) || decimals.len() > 6 {
        return None;
    }
    let micros: i64 = format!("{whole}{decimals:0<6}").parse().ok()?;
    // Nothing is free: a zero is a gap in a list.
    let money = Money::from_micros(micros, Currency::USD);
    Price::per_gpu_hour(money).ok().filter(|_| micros > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_read_exactly_and_nonsense_is_refused() {
        let micros = |text| usd(text).map(|price| price.amount().micros());
        assert_eq!(micros("2.10"), Some(2_100_000));
        assert_eq!(micros("3"), Some(3_000_000));
        assert_eq!(micros("0.000001"), Some(1));
        for wrong in ["", "0", "0.00", "-1", "+1", "1e3", ".5", "5.", "1.0000001", "1,5", "$2"] {
            assert_eq!(micros(wrong), None, "{wrong}");
        }
        assert_eq!(micros("99999999999999999999"), None);
    }
}
