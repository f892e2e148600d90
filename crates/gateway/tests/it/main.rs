//! The gateway on real sockets, in front of engines that do as they are told.

mod breaks;
mod cancels;
mod continues;
mod drains;
mod engine;
mod hedges;
mod http2;
mod limits;
mod passes;
mod rig;
mod smuggling;
mod tale;
