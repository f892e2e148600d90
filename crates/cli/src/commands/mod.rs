//! One file or folder per command, named as it is typed.

pub(crate) mod audit;
pub(crate) mod backtest;
pub(crate) mod check;
pub(crate) mod collect;
pub(crate) mod decisions;
pub(crate) mod emulate;
pub(crate) mod explain;
pub(crate) mod fit;
pub(crate) mod freeze;
pub(crate) mod gateway;
pub(crate) mod gpus;
pub(crate) mod help;
pub(crate) mod install;
pub(crate) mod key;
pub(crate) mod models;
pub(crate) mod operator;
pub(crate) mod plan;
pub(crate) mod prices;
pub(crate) mod simulate;
pub(crate) mod status;
pub(crate) mod tenants;
pub(crate) mod top;
pub(crate) mod trace;
pub(crate) mod version;
pub(crate) mod whatif;
pub(crate) mod why;
