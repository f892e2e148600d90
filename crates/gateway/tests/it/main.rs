//! The gateway on real sockets, in front of engines that do as they are told.

mod breaks;
mod cancels;
mod drains;
mod engine;
mod http2;
mod limits;
mod passes;
mod policies;
mod rig;
mod smuggling;
