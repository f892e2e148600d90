//! What a run is told.

use clap::Parser;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A load generator for chat completions. Prints one JSON object.
#[derive(Clone, Debug, Parser)]
pub struct LoadPlan {
    /// Where to ask; with several, connection after connection takes the next, and what one refuses
    /// another is asked
    #[arg(long, value_delimiter = ',', required = true)]
    pub target: Vec<SocketAddr>,
    #[arg(long, default_value = "/v1/chat/completions")]
    pub path: String,
    #[arg(long, default_value = "mock")]
    pub model: String,
    /// Connections; in a closed loop also requests at once
    #[arg(long, default_value_t = 32)]
    pub connections: usize,
    /// Requests per second in an open loop; a closed loop without
    #[arg(long)]
    pub rate: Option<f64>,
    /// How long new requests are made
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Latencies of requests that are due earlier do not count: connections are made then
    #[arg(long, default_value_t = 0.0)]
    pub warm_up_seconds: f64,
    #[arg(long, default_value_t = 1024)]
    pub body_bytes: usize,
    /// Ask for streams
    #[arg(long)]
    pub stream: bool,
    #[arg(long, default_value_t = 64)]
    pub max_tokens: u32,
    /// Connections begin spread over so many seconds
    #[arg(long, default_value_t = 0.0)]
    pub ramp_seconds: f64,
    /// Loopback addresses to connect from; one has some 28,000 ports
    #[arg(long, default_value_t = 1)]
    pub sources: u8,
    /// A request that has not ended so long after it began has hung
    #[arg(long, default_value_t = 60.0)]
    pub deadline_seconds: f64,
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// One line of JSON per request
    #[arg(long)]
    pub history: Option<PathBuf>,
    /// Clients of a hundred that hang up in the middle
    #[arg(long, default_value_t = 0)]
    pub cancel_percent: u64,
    /// Clients of a hundred that read slowly
    #[arg(long, default_value_t = 0)]
    pub slow_percent: u64,
    /// Clients of a hundred that close their sending side once they have asked
    #[arg(long, default_value_t = 0)]
    pub half_close_percent: u64,
}

/// How a client behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// As it should.
    Plain,
    /// Hangs up after so many events; after none: once it has asked.
    Cancels {
        /// How many.
        after_events: u64,
    },
    /// Hangs up so long after it began to ask, unless it was answered by then.
    Leaves {
        /// How long.
        after: Duration,
    },
    /// Waits between small reads.
    Slow,
    /// Closes its sending side once it has asked.
    HalfCloses,
}

impl Habit {
    /// As histories say it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Cancels { .. } | Self::Leaves { .. } => "cancels",
            Self::Slow => "slow",
            Self::HalfCloses => "half-closes",
        }
    }
}

impl LoadPlan {
    /// How long new requests are made.
    pub fn length(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// When a connection begins.
    pub fn ramp_of(&self, index: usize) -> Duration {
        Duration::from_secs_f64(self.ramp_seconds * index as f64 / self.connections.max(1) as f64)
    }

    /// How the client of this request behaves: by its number and the seed alone.
    pub fn habit(&self, number: u64) -> Habit {
        let mixed = (number ^ self.seed.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (share, more) = ((mixed >> 32) % 100, (mixed >> 8) & 0xff);
        let cancel = self.cancel_percent;
        let slow = cancel + self.slow_percent;
        let half = slow + self.half_close_percent;
        match share {
            _ if share < cancel => Habit::Cancels { after_events: more % 16 },
            _ if share < slow => Habit::Slow,
            _ if share < half => Habit::HalfCloses,
            _ => Habit::Plain,
        }
    }
}
