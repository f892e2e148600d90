//! Keys by which a body steers the engine and not only its own answer: whose turn it is, where caches are
//! fetched from, which part of an engine works, what code runs. Headers that do so stop at the gateway, and
//! so do these, unless a model's settings pass them on.

/// Each with who reads it and what it could do to others.
pub const STEERING: [&str; 16] = [
    // vLLM and SGLang: goes before everybody else.
    "priority",
    // vLLM: which host and blocks a cache is fetched from, or the encoder's; and what plug-ins are told.
    "kv_transfer_params",
    "ec_transfer_params",
    "vllm_xargs",
    // SGLang: where the other half of a pair is, and which rank works.
    "bootstrap_host",
    "bootstrap_port",
    "bootstrap_room",
    "bootstrap_pair_key",
    "data_parallel_rank",
    "routed_dp_rank",
    "disagg_prefill_dp_rank",
    // SGLang: the id of a request, which another may have, and the session of another.
    "rid",
    "session_params",
    // SGLang: code in Python; and a mode in which the whole batch has to run.
    "custom_logit_processor",
    "return_hidden_states",
    // llama.cpp: the slot, and with it whose cache goes.
    "id_slot",
];

/// Which of them a body says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steers(u32);

impl Steers {
    /// The first that is said and not among these.
    pub fn beyond(self, allowed: &[String]) -> Option<&'static str> {
        if self.0 == 0 {
            return None;
        }
        let stated = STEERING.into_iter().enumerate().filter(|(place, _)| self.0 & 1 << place != 0);
        stated.map(|(_, key)| key).find(|key| !allowed.iter().any(|one| one == key))
    }

    pub(super) const fn add(&mut self, place: usize) {
        self.0 |= 1 << place;
    }

    pub(super) const fn has(self, place: usize) -> bool {
        self.0 & 1 << place != 0
    }
}

/// The place of a key in the list.
pub(super) fn named(name: &[u8]) -> Option<usize> {
    STEERING.iter().position(|key| key.as_bytes() == name)
}
