//! Why no engine saw a request.

/// Why no engine saw a request or a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// It is not what the interface says.
    Malformed,
    /// No key, or none that we know.
    Unauthorized,
    /// A path that we do not pass on, or a model that we do not serve.
    NotFound,
    /// It came too slowly.
    Slow,
    /// Head or body are too large.
    TooLarge,
    /// The caller's rate is used up.
    RateLimited,
    /// We have as much as we may hold: requests, bytes or connections.
    Full,
    /// No engine is there.
    NoEngine,
    /// Something else.
    Other,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Malformed,
        Self::Unauthorized,
        Self::NotFound,
        Self::Slow,
        Self::TooLarge,
        Self::RateLimited,
        Self::Full,
        Self::NoEngine,
        Self::Other,
    ];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Unauthorized => "unauthorized",
            Self::NotFound => "not_found",
            Self::Slow => "slow",
            Self::TooLarge => "too_large",
            Self::RateLimited => "rate_limited",
            Self::Full => "full",
            Self::NoEngine => "no_engine",
            Self::Other => "other",
        }
    }

    /// What a status of ours says.
    pub const fn of_status(status: u16) -> Self {
        match status {
            400 | 405 | 411 | 415 | 422 | 501 | 505 => Self::Malformed,
            401 | 403 => Self::Unauthorized,
            404 => Self::NotFound,
            408 => Self::Slow,
            413 | 414 | 431 => Self::TooLarge,
            429 => Self::RateLimited,
            // Anthropic's word for being full is 529.
            507 | 529 => Self::Full,
            502..=504 => Self::NoEngine,
            _ => Self::Other,
        }
    }

    pub(super) const fn index(self) -> usize {
        self as usize
    }
}
