//! Asks engines what they have to do, once for all gateways, and proves that cancelled requests
//! have let go of their slots.

pub use crate::fleet::Report;
