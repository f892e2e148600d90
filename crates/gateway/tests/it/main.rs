//! The gateway on real sockets, in front of engines that do as they are told.

mod breaks;
mod cancels;
mod continues;
mod deaths;
mod drains;
mod engine;
mod hedges;
mod holds;
mod http2;
mod keeps;
mod limits;
mod paid;
mod passes;
mod policies;
mod rig;
mod salts;
mod smuggling;
mod splits;
mod steers;
mod tale;
mod tenants;
mod work;
