//! The binary as users meet it: what it prints, where, and with which exit status.

mod audit;
mod backtest;
mod catalog;
mod check;
mod emulate;
mod flyball;
mod gateway;
mod heartbeat;
mod keys;
mod operator;
mod plan;
mod server;
mod simulate;
mod texts;
mod top;
mod trace;
