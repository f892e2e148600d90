//! What of a node's price its GPUs cost.

use crate::money::PicoDollars;
use flyball_core::units::{Bytes, Gpus, Price, Timestamp};

/// Where a node's price comes from, the one that is believed last to first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PriceSource {
    /// A list that comes with the program.
    Catalogue,
    /// The owner wrote it into the Pool.
    Pool,
    /// The cloud has billed it.
    Bill,
}

impl PriceSource {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Catalogue => "catalogue",
            Self::Pool => "pool",
            Self::Bill => "bill",
        }
    }
}

/// Processors and memory of a node, which are bought with its GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostSize {
    pub milli_cpus: u64,
    pub memory: Bytes,
}

/// What processors and memory cost where they are sold without GPUs, for an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRates {
    pub cpu: PicoDollars,
    pub gib: PicoDollars,
}

impl HostRates {
    /// On-demand prices in US regions, August 2026: what OpenCost takes for nodes that it knows no better price of.
    pub const USUAL: Self =
        Self { cpu: PicoDollars::new(31_611_000_000), gib: PicoDollars::new(4_237_000_000) };

    fn of(self, size: HostSize) -> PicoDollars {
        let cpu = self.cpu.times(size.milli_cpus.into()).get() / 1_000;
        let memory = self.gib.times(size.memory.get().into()).get() / (1 << 30);
        PicoDollars::new(cpu.saturating_add(memory))
    }
}

/// What a node costs for an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodePrice {
    pub hourly: PicoDollars,
    /// What it would cost on demand, if it was bought cheaper and that is known.
    pub on_demand: Option<PicoDollars>,
    /// Unknown: everything is paid for the GPUs.
    pub host: Option<HostSize>,
    pub source: PriceSource,
}

/// A node's price in two parts, for an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceParts {
    /// Of all its GPUs.
    pub gpus: PicoDollars,
    /// Of its processors and memory.
    pub host: PicoDollars,
}

impl NodePrice {
    /// A node whose GPUs cost so much each, with all that belongs to them.
    pub fn of_gpus(price: Price, gpus: Gpus, source: PriceSource) -> Self {
        let hourly = PicoDollars::from_money(price.amount()).times(gpus.get().into());
        Self { hourly, on_demand: None, host: None, source }
    }

    /// Processors and memory at market price first, the rest is what the GPUs cost.
    ///
    /// A cut by a fixed ratio of GPU to memory, as OpenCost makes it where a cloud names no price of a GPU, leaves 34 %
    /// of an AWS node with eight H100 to its GPUs; half of the bill then shows as idle processors. A node that was
    /// bought at 40 % of its on-demand price got its processors at 40 % too. At least half goes to the GPUs: nobody
    /// rents a GPU node for its memory.
    pub fn parts(&self, gpus: Gpus, rates: HostRates) -> PriceParts {
        if gpus.is_zero() {
            return PriceParts { gpus: PicoDollars::ZERO, host: self.hourly };
        }
        let market = self.host.map_or(PicoDollars::ZERO, |size| rates.of(size));
        let market = match self.on_demand {
            Some(full) if full > self.hourly.max(PicoDollars::ZERO) => {
                // Prices stay below 10^21 millionths of a pico-dollar, so that the product fits.
                let share = self.hourly.get().saturating_mul(1_000_000) / full.get();
                PicoDollars::new(market.get().saturating_mul(share) / 1_000_000)
            }
            _ => market,
        };
        let host = market.min(PicoDollars::new(self.hourly.get() / 2)).max(PicoDollars::ZERO);
        PriceParts { gpus: self.hourly - host, host }
    }

    /// What the node costs over a span, in its parts: spans that touch add up exactly.
    pub fn over(&self, gpus: Gpus, rates: HostRates, from: Timestamp, to: Timestamp) -> PriceParts {
        let all = self.hourly.for_span(from, to);
        let gpus = self.parts(gpus, rates).gpus.for_span(from, to);
        PriceParts { gpus, host: all - gpus }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(hourly: &str, on_demand: Option<&str>, cpus: u64, gib: u64) -> NodePrice {
        NodePrice {
            hourly: PicoDollars::read(hourly).unwrap(),
            on_demand: on_demand.map(|text| PicoDollars::read(text).unwrap()),
            host: Some(HostSize { milli_cpus: cpus * 1_000, memory: Bytes::new(gib << 30) }),
            source: PriceSource::Bill,
        }
    }

    fn gpu_pct(node: NodePrice, gpus: u32) -> i128 {
        let parts = node.parts(Gpus::new(gpus), HostRates::USUAL);
        assert_eq!(parts.gpus + parts.host, node.hourly);
        parts.gpus.get() * 100 / node.hourly.get()
    }

    #[test]
    fn the_gpus_of_an_h100_node_cost_most_of_it() {
        // p5.48xlarge: 192 processors, 2 TiB; 34 % by OpenCost's ratio.
        assert_eq!(gpu_pct(node("55.04", None, 192, 2_048), 8), 73);
        // g5.xlarge.
        assert_eq!(gpu_pct(node("1.006", None, 4, 16), 1), 80);
    }

    #[test]
    fn a_node_bought_cheaper_got_its_processors_cheaper() {
        let full = gpu_pct(node("55.04", None, 192, 2_048), 8);
        assert_eq!(gpu_pct(node("20.64", Some("55.04"), 192, 2_048), 8), full);
        // Without the on-demand price, the market price of the host would take most of it: half is the end.
        assert_eq!(gpu_pct(node("20.64", None, 192, 2_048), 8), 50);
    }

    #[test]
    fn without_a_size_everything_is_the_gpus_and_without_gpus_everything_is_the_host() {
        let bare = NodePrice { host: None, ..node("8", None, 1, 1) };
        assert_eq!(gpu_pct(bare, 8), 100);
        assert_eq!(gpu_pct(node("8", None, 1, 1), 0), 0);
    }

    #[test]
    fn a_price_that_is_no_price_invents_nothing() {
        for hourly in ["0", "-3"] {
            let parts = node(hourly, Some("0"), 64, 512).parts(Gpus::new(8), HostRates::USUAL);
            assert_eq!(parts.host, PicoDollars::ZERO);
            assert_eq!(parts.gpus, PicoDollars::read(hourly).unwrap());
        }
    }
}
