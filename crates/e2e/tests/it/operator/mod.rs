//! The operator on a real cluster: what it recommends, does, and does not do.

mod adopts;
mod audit;
mod boards;
mod budget;
mod chart;
mod cut;
mod drains;
mod faults;
mod five;
mod limits;
mod pages;
mod rates;
mod rig;
mod rights;
mod rules;
mod serves;
mod shell;
mod shown;
mod tenants;
mod tokens;
mod trust;
mod wakes;
