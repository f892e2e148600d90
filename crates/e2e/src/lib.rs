//! What every story on a real cluster needs: a connection, a namespace of its own, waiting, and a
//! full account of what happened when it fails.
//!
//! Stories live in `tests/it`, one file each. They know the cluster only through its API and
//! Flyball only through its image, its binary and its output. `cargo xtask e2e` sets the
//! environment and runs them; the cluster may be ours or any other.

mod account;
mod answers;
mod cluster;
mod figures;
pub mod http;
pub mod process;
mod queue;
mod relay;
mod stopped;
mod story;
mod wait;

pub use answers::{AnswerFault, AnswerLog};
pub use cluster::{Cluster, dynamic, job_exit, kubectl, kubectl_output, pod_log};
pub use figures::{figure, is_long};
pub use queue::{KUEUE, add_queue, create, remove_of_cluster, remove_queue};
pub use relay::Relay;
pub use stopped::Stopped;
pub use story::{Story, in_namespace};
pub use wait::until;

/// Says something to whoever runs the story.
#[expect(clippy::print_stderr, reason = "figures and logs, for whoever runs the story")]
pub fn note(text: &str) {
    eprintln!("{text}");
}
