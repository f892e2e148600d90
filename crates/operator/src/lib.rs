//! Serves and scales models on Kubernetes: looks, decides with the governor, carries out, tells.
//!
//! The modules are its steps, in order: [`observe`] (reads), [`validate`] (pure), [`decide`] (pure but for
//! what it remembers), [`build`] (pure), [`apply`] (writes), [`report`] (writes statuses, events,
//! metrics). `lead` sees to it that one of several operators writes, `run` is the loop, `admin` answers
//! questions, of which `imagine` is the one about other worlds, `link` is its end of the stream to the
//! gateways, `quota` gives out limits and budgets of Tenants there, `runs` is
//! about training runs, `loans` about what they borrow.
//!
//! It never talks to a model; training runs it asks how far they are. In *Recommend* mode it writes nothing but statuses
//! and, where Tenants have budgets, the record of those; in *Act* mode it writes
//! the `scale` of workloads, marks on pods that drain, and the workloads it made itself. It fails
//! static: without the API server, Prometheus or gateways everything stays as it is.
//!
//! Start at [`run`].

#![deny(missing_docs)]

pub mod admin;
pub mod apply;
pub mod build;
pub mod decide;
pub mod imagine;
pub mod lead;
pub mod link;
pub mod loans;
pub mod observe;
pub mod persist;
pub mod quota;
pub mod report;
pub mod run;
pub mod runs;
pub mod settings;
mod time;
pub mod tune;
pub mod validate;
#[cfg(test)]
mod worlds;
