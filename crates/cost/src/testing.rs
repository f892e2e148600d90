//! Made-up buckets of time: nodes, holders and callers of any number, from a seed.

use crate::attribute::{CallerWork, GpuHolder, GpuHolding, NodeTime, ServedBy, TimeBucket};
use crate::money::PicoDollars;
use crate::price::{HostSize, NodePrice, PriceSource};
use crate::row::ServedTokens;
use crate::uses::GpuUse;
use flyball_core::units::{Bytes, GpuMicros, Gpus, Micros, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Numbers that look random and are the same for the same seed (splitmix64).
#[derive(Clone, Debug)]
pub struct SeededNumbers(pub u64);

impl SeededNumbers {
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Below `end`.
    pub const fn below(&mut self, end: u64) -> u64 {
        self.next() % if end == 0 { 1 } else { end }
    }

    /// From zero to below one.
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A month of tenants and models on some pools.
#[derive(Clone, Copy, Debug)]
pub struct MadeUpMonth {
    pub seed: u64,
    pub tenants: usize,
    pub models: usize,
    pub nodes: usize,
    /// How many of a model's tenants send anything in a bucket, of a hundred.
    pub active_pct: u64,
}

/// What came in one bucket.
#[derive(Clone, Debug)]
pub struct MadeUpBucket {
    pub bucket: TimeBucket,
    pub nodes: Vec<NodeTime>,
    pub served: Vec<ServedBy>,
}

const POOLS: usize = 4;
/// Of a hundred nodes without any price.
const UNPRICED: u64 = 5;

impl MadeUpMonth {
    /// The bucket that begins so many hours after 1 November 2026.
    pub fn hour(&self, hour: u64) -> MadeUpBucket {
        let mut numbers = SeededNumbers(self.seed ^ hour.wrapping_mul(0x9e37_79b9));
        let start = Timestamp::from_millis((1_793_491_200 + hour * 3_600) * 1_000);
        let bucket = TimeBucket { start, length: Micros::HOUR };
        let nodes = (0..self.nodes).map(|node| self.node(node, bucket, &mut numbers)).collect();
        let served = (0..self.models).map(|model| self.served(model, &mut numbers)).collect();
        MadeUpBucket { bucket, nodes, served }
    }

    fn node(&self, node: usize, bucket: TimeBucket, numbers: &mut SeededNumbers) -> NodeTime {
        let gpus = Gpus::new(8);
        let hourly =
            PicoDollars::new(i128::from(20_000_000_000_000 + numbers.below(40_000_000_000_000)));
        let host = HostSize { milli_cpus: 192_000, memory: Bytes::new(2_048 << 30) };
        let price =
            NodePrice { hourly, on_demand: None, host: Some(host), source: PriceSource::Pool };
        let price = (numbers.below(100) >= UNPRICED).then_some(price);
        let pool = node % POOLS;
        let count = numbers.below(4) + 1;
        let holdings = (0..count).map(|_| self.holding(pool, gpus, numbers)).collect();
        // One in ten comes in the middle of the hour.
        let late = if numbers.below(10) == 0 { numbers.below(Micros::HOUR.get()) } else { 0 };
        let from = bucket.start.saturating_add(Micros::new(late));
        let to = bucket.start.saturating_add(bucket.length);
        NodeTime { pool: format!("pool-{pool}").into(), gpus, from, to, price, holdings }
    }

    fn holding(&self, pool: usize, gpus: Gpus, numbers: &mut SeededNumbers) -> GpuHolding {
        let all = GpuMicros::of(gpus, Micros::HOUR).get();
        // Now and then more than there is.
        let held = numbers.below(all / 3);
        let model = numbers.below(self.models as u64) as usize / POOLS * POOLS + pool;
        let holder = match numbers.below(5) {
            0 => GpuHolder::Run {
                run: format!("ml/run-{pool}").into(),
                tenant: Some("ml/org-0/team-0".into()),
            },
            _ => GpuHolder::Replica { model: model_name(model), variant: "main".into() },
        };
        let mut other = BTreeMap::new();
        for use_ in [GpuUse::Quiet, GpuUse::Starting, GpuUse::Drained, GpuUse::RedoingLostWork] {
            other.insert(use_, GpuMicros::new(numbers.below(held / 4 + 1)));
        }
        let (held, computing) = (GpuMicros::new(held), GpuMicros::new(numbers.below(held / 2 + 1)));
        GpuHolding { holder, held, computing, other }
    }

    fn served(&self, model: usize, numbers: &mut SeededNumbers) -> ServedBy {
        let mut callers = Vec::new();
        for tenant in 0..self.tenants {
            if numbers.below(100) >= self.active_pct {
                continue;
            }
            let served = ServedTokens {
                requests: numbers.below(1_000),
                missed: numbers.below(10),
                input: numbers.below(1_000_000),
                cached_input: numbers.below(1_000_000),
                output: numbers.below(300_000),
            };
            let org = tenant / 100;
            callers.push(CallerWork {
                tenant: Some(format!("ml/org-{org}/team-{tenant}").into()),
                key: Some(format!("key{tenant:07}").into()),
                served,
                inside: served.input + 7 * served.output,
                outside: numbers.below(10_000),
            });
        }
        let pool: Arc<str> = format!("pool-{}", model % POOLS).into();
        ServedBy { pool, model: model_name(model), variant: "main".into(), callers }
    }
}

fn model_name(model: usize) -> Arc<str> {
    format!("ml/model-{model}").into()
}
