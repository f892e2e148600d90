//! Paths on which a hostile reading found promises broken, one story each.

mod deadly;
mod follows;
mod gateway_gone;
mod neighbours;
mod streams;
mod twins;
mod wedged;
