//! What people want, from specs.

use super::ConversionProblem;
use crate::model_service::{
    CapacityPrior, ModelService, ModelServiceSpec, MoneySpec, ObjectivesSpec, Scaling, ScalingMode,
    Sleep, VariantSpec,
};
use crate::pool::{Growth, PoolSpec, PurchaseSpec};
use crate::{decimal, labels};
use flyball_core::ids::{ModelId, Namespace, PoolId, VariantName};
use flyball_core::interval::{Interval, Origin};
use flyball_core::snapshot::{self, Capacity, ScalingBounds};
use flyball_core::units::{self, Currency, Gpus, Micros, Price, Replicas, Tokens, TokensPerSecond};
use kube::ResourceExt as _;
use std::collections::BTreeMap;

/// A stated capacity may be off by this much: what owners write down is a good day's.
const STATED_ERROR_PERCENT: u64 = 20;

/// A stated cold start may take this many times as long: nodes and image pulls differ.
const STATED_START_TIMES: u64 = 2;

impl ModelService {
    /// Its id.
    pub fn id(&self) -> Result<ModelId, ConversionProblem> {
        let namespace = self.namespace().unwrap_or_default();
        ModelId::new(&namespace, &self.name_any())
            .map_err(|error| ConversionProblem::of("metadata.name", error.to_string()))
    }

    /// The names by which clients, engines and gateways know it.
    pub fn public_names(&self) -> Vec<String> {
        match self.spec.names.as_slice() {
            [] => vec![self.name_any()],
            names => names.to_vec(),
        }
    }

    /// Whether a person froze it and the time has not passed. A time that cannot be read freezes too:
    /// who wrote it wanted that nothing changes.
    pub fn is_frozen(&self, now: jiff::Timestamp) -> bool {
        self.annotations()
            .get(labels::FROZEN_UNTIL)
            .is_some_and(|until| until.parse::<jiff::Timestamp>().map_or(true, |until| now < until))
    }
}

impl ModelServiceSpec {
    /// Manually set number of replicas.
    pub fn pinned(&self) -> Option<Replicas> {
        self.replicas.map(count)
    }
}

impl Scaling {
    /// Whether decisions are carried out.
    pub const fn mode(&self) -> snapshot::Mode {
        match self.mode {
            ScalingMode::Recommend => snapshot::Mode::Recommend,
            ScalingMode::Act => snapshot::Mode::Act,
        }
    }

    /// How few and how many replicas there may be.
    pub fn bounds(&self) -> ScalingBounds {
        ScalingBounds {
            min: count(self.min),
            max: count(self.max),
            may_sleep: self.sleep == Sleep::WhenIdle,
        }
    }
}

impl ObjectivesSpec {
    /// In `core`'s units.
    pub fn of_core(&self) -> Result<snapshot::Objectives, ConversionProblem> {
        let millis = |value: Option<i32>| {
            value.and_then(|value| u64::try_from(value).ok()).map(Micros::from_millis)
        };
        // Percent to per million: two places to the left, six to the right.
        let attainment = decimal::micros(&self.attainment_percent)
            .and_then(|micros| u32::try_from(micros / 100).ok())
            .filter(|share| *share < 1_000_000)
            .ok_or_else(|| {
                ConversionProblem::of(
                    "spec.objectives.attainmentPercent",
                    format!("must be a decimal below 100, not {:?}", self.attainment_percent),
                )
            })?;
        Ok(snapshot::Objectives {
            first_token: millis(self.first_token_milliseconds),
            between_tokens: millis(self.between_tokens_milliseconds),
            attainment_per_million: attainment,
        })
    }
}

impl MoneySpec {
    /// In `core`'s units.
    pub fn of_core(&self, field: &str) -> Result<units::Money, ConversionProblem> {
        let currency = currency(&self.currency, field)?;
        decimal::money(&self.amount, currency).ok_or_else(|| {
            ConversionProblem::of(field, format!("must be a decimal, not {:?}", self.amount))
        })
    }
}

impl VariantSpec {
    /// Its name.
    pub fn id(&self) -> Result<VariantName, ConversionProblem> {
        VariantName::new(&self.name)
            .map_err(|error| ConversionProblem::of("spec.variants.name", error.to_string()))
    }

    /// Its pool, or one of its own name where none is given: what is unknown about it stays unknown.
    pub fn pool(&self) -> Result<PoolId, ConversionProblem> {
        let name = self.pool.as_deref().unwrap_or("unpooled");
        PoolId::new(name).map_err(|error| {
            ConversionProblem::of(format!("spec.variants[{}].pool", self.name), error.to_string())
        })
    }

    /// How long a replica takes to serve, as its owner says.
    pub fn stated_cold_start(&self) -> Option<Interval<Micros>> {
        let seconds = u64::try_from(self.cold_start_seconds?).ok()?;
        let [low, point, high] =
            [seconds / STATED_START_TIMES, seconds, seconds * STATED_START_TIMES]
                .map(Micros::from_seconds);
        Interval::new(low, point, high, Origin::Stated).ok()
    }
}

impl CapacityPrior {
    /// What its owner says, with the error that such numbers have.
    pub fn of_core(&self) -> Capacity {
        fn stated<T: Copy + PartialOrd>(
            value: Option<i64>,
            unit: impl Fn(u64) -> T,
        ) -> Option<Interval<T>> {
            let value = u64::try_from(value?).ok()?;
            let error = value * STATED_ERROR_PERCENT / 100;
            Interval::new(unit(value - error), unit(value), unit(value + error), Origin::Stated)
                .ok()
        }
        Capacity {
            prefill: stated(self.prefill_tokens_per_second, TokensPerSecond::new),
            decode: stated(self.decode_tokens_per_second, TokensPerSecond::new),
            resident: stated(self.resident_tokens, Tokens::new),
            // Two rates say how much of each, and not what the one costs the other.
            ..Capacity::UNKNOWN
        }
    }
}

impl PoolSpec {
    /// Prices in `core`'s units.
    pub fn prices_of_core(&self) -> Result<BTreeMap<snapshot::Purchase, Price>, ConversionProblem> {
        let currency = currency(&self.currency, "spec.currency")?;
        let price = |price: &crate::pool::PriceSpec| {
            let field = "spec.prices.perGpuHour";
            let amount = decimal::money(&price.per_gpu_hour, currency).ok_or_else(|| {
                ConversionProblem::of(field, "must be a decimal such as \"6.88\"")
            })?;
            let amount = Price::per_gpu_hour(amount)
                .map_err(|error| ConversionProblem::of(field, error.to_string()))?;
            Ok((price.purchase.of_core(), amount))
        };
        self.prices.iter().map(price).collect()
    }

    /// What namespaces may have against others. One that cannot be a namespace has no models.
    pub fn shares_of_core(&self) -> BTreeMap<Namespace, snapshot::Share> {
        let share = |share: &crate::pool::ShareSpec| {
            let guaranteed = Gpus::new(u32::try_from(share.guaranteed_gpus).unwrap_or(0));
            let namespace = Namespace::new(&share.namespace).ok()?;
            Some((namespace, snapshot::Share { guaranteed, priority: share.priority }))
        };
        self.shares.iter().filter_map(share).collect()
    }

    /// Whether nodes come when pods wait for them.
    pub fn can_grow(&self) -> bool {
        self.growth == Growth::Autoscaled
    }
}

impl PurchaseSpec {
    /// In `core`'s words.
    pub const fn of_core(self) -> snapshot::Purchase {
        match self {
            Self::Reserved => snapshot::Purchase::Reserved,
            Self::OnDemand => snapshot::Purchase::OnDemand,
            Self::Spot => snapshot::Purchase::Spot,
        }
    }
}

fn currency(text: &str, field: &str) -> Result<Currency, ConversionProblem> {
    text.parse().map_err(|error: units::MoneyError| ConversionProblem::of(field, error.to_string()))
}

/// The schema holds replicas to 0 and above.
fn count(value: i32) -> Replicas {
    Replicas::new(u32::try_from(value).unwrap_or(0))
}
