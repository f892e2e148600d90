//! Our own policies, as the replays ask them: adaptors and nothing more.
//!
//! What is decided here is decided by the code that the operator runs. Rivals are in
//! [`crate::rivals`].

mod governor;

pub use governor::{Governor, HandedOn};
