//! Gateway and engines together.

mod real_engines;
