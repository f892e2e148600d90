//! The charts against what they are made from.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod charts;
