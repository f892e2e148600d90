//! What is fuzzed, and what the targets share.
//!
//! The gateway's pure modules are built here by their paths and not as its crate: its clients of
//! Kubernetes would take most of an hour to build with a compiler of their own, and none of them is
//! fuzzed. A module that uses more of the gateway than stands here says so by not building.
//! Start at one of `targets/`.

#![expect(dead_code, unused_imports, reason = "only the gateway uses all of its modules")]

// The gateway's settings name this one type of `flyball_admin`, which is full of Kubernetes.
extern crate self as flyball_admin;

#[path = "../../crates/admin/src/clients.rs"]
mod clients;
#[path = "../../crates/gateway/src/scan/mod.rs"]
pub mod scan;
#[path = "../../crates/gateway/src/settings/mod.rs"]
pub mod settings;
#[path = "../../crates/gateway/src/sse/mod.rs"]
pub mod sse;
#[path = "../../crates/gateway/src/surface.rs"]
mod surface;

pub use clients::AdminClients;
pub use surface::Surface;

/// An input: the first byte chooses the interface, the second how the rest is cut.
pub struct Input<'a> {
    /// Which interface.
    pub surface: Surface,
    /// What is read.
    pub bytes: &'a [u8],
    seed: u8,
}

impl<'a> Input<'a> {
    /// `None` if there is nothing to read.
    pub fn of(data: &'a [u8]) -> Option<Self> {
        let [surface, seed, bytes @ ..] = data else { return None };
        let surface = Surface::ALL[usize::from(*surface) % Surface::ALL.len()];
        Some(Self { surface, bytes, seed: *seed })
    }

    /// The bytes in pieces: all of one length, or of lengths that go up and down.
    pub fn pieces(&self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.bytes;
        let mut number = u32::from(self.seed);
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let length = match self.seed {
                0..64 => usize::from(self.seed) + 1,
                _ => 1 + (number >> 24) as usize,
            };
            let (piece, behind) = rest.split_at(length.min(rest.len()));
            rest = behind;
            Some(piece)
        })
    }
}
