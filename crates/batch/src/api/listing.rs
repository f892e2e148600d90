//! Pages of listings.

use super::answer::ApiError;
use crate::forms::Page;

/// What a caller wants to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listing {
    pub(super) limit: usize,
    pub(super) after: Option<String>,
    pub(super) is_ascending: bool,
    pub(super) purpose: Option<String>,
}

impl Listing {
    /// Of a query, with this many on a page unless it says otherwise, and at most so many.
    pub(super) fn read(query: &str, limit: usize, most: usize) -> Result<Self, ApiError> {
        let mut found = Self { limit, after: None, is_ascending: false, purpose: None };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "limit" => {
                    let limit = value.parse().ok().filter(|limit| (1..=most).contains(limit));
                    found.limit = limit.ok_or_else(|| {
                        let message = format!("limit must be a number from 1 to {most}.");
                        ApiError::wrong("limit", "invalid_value", &message)
                    })?;
                }
                "after" => found.after = Some(value.to_owned()),
                "order" => {
                    found.is_ascending = match value {
                        "asc" => true,
                        "desc" => false,
                        _ => {
                            let message = "order must be asc or desc.";
                            return Err(ApiError::wrong("order", "invalid_value", message));
                        }
                    }
                }
                "purpose" => found.purpose = Some(value.to_owned()),
                _ => {}
            }
        }
        Ok(found)
    }

    /// The ids after the one that a caller has, in its order. `ids` are in ascending order.
    pub(super) fn of(&self, mut ids: Vec<String>) -> Vec<String> {
        if let Some(after) = &self.after {
            ids.retain(|id| if self.is_ascending { id > after } else { id < after });
        }
        if !self.is_ascending {
            ids.reverse();
        }
        ids
    }
}

/// A page of these.
pub(super) fn page<T>(data: Vec<T>, has_more: bool, id: impl Fn(&T) -> &str) -> Page<T> {
    let first_id = data.first().map(|one| id(one).to_owned());
    let last_id = data.last().map(|one| id(one).to_owned());
    Page { object: "list", data, first_id, last_id, has_more }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_in_both_orders() {
        let ids = || ["a", "b", "c"].map(str::to_owned).to_vec();
        let of = |query: &str| Listing::read(query, 20, 100).unwrap().of(ids()).join("");
        assert_eq!(of(""), "cba");
        assert_eq!(of("after=b"), "a");
        assert_eq!(of("order=asc&after=a"), "bc");
        assert_eq!(Listing::read("limit=7", 20, 100).unwrap().limit, 7);
        for wrong in ["limit=0", "limit=101", "limit=x", "order=up"] {
            assert!(Listing::read(wrong, 20, 100).is_err(), "{wrong}");
        }
    }
}
