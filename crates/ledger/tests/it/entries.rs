//! Entries for tests.

use flyball_core::units::Timestamp;
use flyball_resources::usage::{Judged, UsageEntry, UsageOpen, UsageParties, UsageRecord};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Asks a future until it is done: stores for tests wait for nothing outside.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return done;
        }
    }
}

/// Tokens of an answer, which tell requests apart in sums.
pub(crate) const fn tokens(request: u64) -> u64 {
    100 + request % 977
}

pub(crate) fn parties<'a>(tenant: &'a str, key: &'a str) -> UsageParties<'a> {
    UsageParties { tenant, key, model: "llama-70b", variant: "h100", ..Default::default() }
}

pub(crate) fn open<'a>(
    request: u64,
    tenant: &'a str,
    key: &'a str,
    at: Timestamp,
) -> UsageEntry<'a> {
    UsageEntry::Open(UsageOpen { request, parties: parties(tenant, key), started: at })
}

pub(crate) fn close<'a>(
    request: u64,
    tenant: &'a str,
    key: &'a str,
    at: Timestamp,
) -> UsageEntry<'a> {
    UsageEntry::Close(UsageRecord {
        request,
        parties: parties(tenant, key),
        started: at,
        ended: at,
        input_tokens: 1_000,
        cached_tokens: 200,
        output_tokens: tokens(request),
        judged: if request.is_multiple_of(3) { Judged::Missed } else { Judged::Met },
        cost_units: 1_700,
        list_pico: Some(123_456_789),
        currency: "USD",
        estimated: false,
    })
}
