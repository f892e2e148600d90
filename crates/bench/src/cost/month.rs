//! A made-up month: every bucket is attributed, checked, added up another way, and a part of it exported.

use flyball_core::units::GpuMicros;
use flyball_cost::attribute::attribute;
use flyball_cost::focus::{
    ChargebackPolicy, FocusIssuer, FocusViolation, ListPrices, csv_text, export, validate,
};
use flyball_cost::money::PicoDollars;
use flyball_cost::price::HostRates;
use flyball_cost::sums::{SumError, check};
use flyball_cost::testing::{MadeUpBucket, MadeUpMonth};
use flyball_cost::uses::{Spending, Spent};

const MONTH: MadeUpMonth =
    MadeUpMonth { seed: 23, tenants: 10_000, models: 50, nodes: 400, active_pct: 2 };

/// Every so many hours one is exported: an hour has 10,000 rows, and each becomes three.
const EXPORTED: u64 = 120;

#[derive(Default)]
pub(super) struct Played {
    hours: u64,
    rows: u64,
    pub(super) errors: Vec<SumError>,
    spent: Spending,
    priced: PicoDollars,
    paid: PicoDollars,
    exists: GpuMicros,
    problems: u64,
    pub(super) sum_error: u128,
    exported: u64,
    pub(super) violations: Vec<FocusViolation>,
    pub(super) focus_pct: f64,
}

pub(super) fn played(hours: u64) -> Played {
    let mut all = Played { hours, focus_pct: 100.0, ..Played::default() };
    for hour in 0..hours {
        let one = MONTH.hour(hour);
        all.hour(hour, &one);
    }
    all.sum_error = (all.paid - all.priced).get().unsigned_abs()
        + u128::from(all.exists.get().abs_diff(all.spent.paid().time.get()));
    all
}

impl Played {
    fn hour(&mut self, hour: u64, one: &MadeUpBucket) {
        let attribution = attribute(one.bucket, &one.nodes, &one.served, HostRates::USUAL);
        self.errors.extend(check(one.bucket, &one.nodes, &one.served, &attribution.rows));
        self.problems += attribution.problems.len() as u64;
        self.rows += attribution.rows.len() as u64;
        for row in &attribution.rows {
            self.spent += &row.spent;
            self.priced += row.spent.paid().money + row.host;
        }
        for node in &one.nodes {
            let length = node.to.since(node.from).unwrap_or_default();
            self.exists = self.exists.saturating_add(GpuMicros::of(node.gpus, length));
            if let Some(price) = node.price {
                self.paid += price.hourly.for_span(node.from, node.to);
            }
        }
        if hour.is_multiple_of(EXPORTED) {
            let file = csv_text(&export(&attribution.rows, &issuer()).rows);
            // A file that cannot be read has no column that is right.
            let findings = validate(&file).unwrap_or_default();
            self.exported += findings.rows;
            self.focus_pct = self.focus_pct.min(findings.columns_ok_pct().unwrap_or(0.0));
            self.violations.extend(findings.violations);
        }
    }

    pub(super) fn text(&self) -> String {
        let hours = |spent: Spent| spent.time.get() / 3_600_000_000;
        let mut text = format!(
            "{} hours of {} tenants, {} models and {} nodes with eight GPUs, of which one in twenty has no price: {} rows. Reports \
             that contradict each other ({} of them) are among the input. Every bucket is checked by pools, uses and models; beside \
             it prices of nodes are added up without any split. GPU time or money that is in one sum and not in the other: {}.\n\n\
             | | GPU-hours | USD |\n|---|---|---|\n",
            self.hours,
            MONTH.tenants,
            MONTH.models,
            MONTH.nodes,
            self.rows,
            self.problems,
            self.sum_error
        );
        let mut line = |name: &str, spent: Spent| {
            let unknown = spent.unpriced.get() / 3_600_000_000;
            text.push_str(&format!(
                "| {name} | {} | {:.2}, unknown for {unknown} GPU-hours |\n",
                hours(spent),
                spent.money
            ));
        };
        line("paid", self.spent.paid());
        line("allocated", self.spent.allocated());
        self.spent.iter().for_each(|(use_, spent)| line(use_.name(), spent));
        text + &format!(
            "\n{} rows of FOCUS 1.4 were written from every {EXPORTED}th hour and read again by a table of the standard's rules: \
             {} violations, {} % of 65 columns without one.\n",
            self.exported,
            self.violations.len(),
            self.focus_pct
        )
    }
}

fn issuer() -> FocusIssuer {
    let prices = ListPrices { input: 300_000, cached_input: 30_000, output: 1_200_000 };
    FocusIssuer {
        billing_account_id: "cluster".to_owned(),
        billing_account_name: None,
        platform: "Flyball".to_owned(),
        host_provider: None,
        region: None,
        policy: ChargebackPolicy::PriceList,
        // Every other model has a price list; the rest is billed by GPU time.
        prices: (0..MONTH.models)
            .step_by(2)
            .map(|model| (format!("ml/model-{model}").into(), prices))
            .collect(),
    }
}
