//! The real gateway in front of emulated engines.

mod proven;
