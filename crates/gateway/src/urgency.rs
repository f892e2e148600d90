//! How urgent a request is: what its caller is, less if it says so itself, and more only up to what its caller may be.
//!
//! Below the priorities of callers is batch, which runs on capacity that nobody else wants.

use crate::identify::Caller;
use crate::scan::Scanned;
use crate::settings::Priority;
use flyball_routing::fair::Class;
use http::{HeaderMap, HeaderName};

/// The header in which a request says how urgent it is.
static PRIORITY: HeaderName = HeaderName::from_static("x-flyball-priority");

/// The class of a request with these headers and this body. Of several things that are said, the least urgent holds.
pub(crate) fn class(headers: &HeaderMap, scanned: &Scanned, caller: &Caller) -> Class {
    if scanned.flex { Class::Batch } else { stated(headers, caller.priority, caller.ceiling) }
}

fn stated(headers: &HeaderMap, callers: Priority, ceiling: Priority) -> Class {
    let mut stated = None;
    for value in headers.get_all(&PRIORITY) {
        stated = stated.max(match value.as_bytes() {
            b"high" => Some(Class::High),
            b"normal" => Some(Class::Normal),
            b"low" => Some(Class::Low),
            b"batch" => Some(Class::Batch),
            _ => None,
        });
    }
    stated.map_or(class_of(callers), |stated| stated.max(class_of(ceiling)))
}

const fn class_of(priority: Priority) -> Class {
    match priority {
        Priority::High => Class::High,
        Priority::Normal => Class::Normal,
        Priority::Low => Class::Low,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn with(values: &[&'static str]) -> HeaderMap {
        values.iter().map(|v| (PRIORITY.clone(), HeaderValue::from_static(v))).collect()
    }

    #[test]
    fn a_request_can_only_make_itself_less_urgent() {
        let of = |headers: &HeaderMap, caller| stated(headers, caller, caller);
        assert_eq!(of(&with(&["low"]), Priority::High), Class::Low);
        assert_eq!(of(&with(&["high"]), Priority::Low), Class::Low);
        assert_eq!(of(&with(&["batch"]), Priority::High), Class::Batch);
        assert_eq!(of(&HeaderMap::new(), Priority::High), Class::High);
        assert_eq!(of(&with(&["urgent"]), Priority::Normal), Class::Normal);
        assert_eq!(of(&with(&["batch", "high"]), Priority::High), Class::Batch, "the least of two");
        assert_eq!(of(&with(&["high", "batch"]), Priority::High), Class::Batch);
    }

    #[test]
    fn a_tenant_is_as_usual_unless_a_request_asks_for_more_than_that_and_may() {
        let of = |headers: &HeaderMap, ceiling| stated(headers, Priority::Normal, ceiling);
        assert_eq!(of(&HeaderMap::new(), Priority::High), Class::Normal);
        assert_eq!(of(&with(&["high"]), Priority::High), Class::High);
        assert_eq!(of(&with(&["high"]), Priority::Normal), Class::Normal);
        assert_eq!(of(&with(&["low"]), Priority::High), Class::Low);
    }
}
