//! How many weights there are, by the part of the model they belong to.

use super::{Architecture, Attention, Experts, LinearLayers, Stored};

/// Weights by part, summed over layers. The parts differ in number format and in who reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    pub embedding: u64,
    /// The output layer; 0 when it is the embedding.
    pub head: u64,
    pub attention: u64,
    /// Feed-forward blocks of the layers without experts.
    pub dense: u64,
    pub routed_experts: u64,
    pub shared_experts: u64,
    pub router: u64,
    /// Norms and biases.
    pub small: u64,
    /// Of the routed experts, what one token visits.
    pub visited_experts: u64,
}

impl Parameters {
    pub const fn total(&self) -> u64 {
        self.outside_experts() + self.routed_experts
    }

    /// What one token passes through, the way model cards count it: with the embedding.
    pub const fn active(&self) -> u64 {
        self.outside_experts() + self.visited_experts
    }

    /// What one token is multiplied with: everything active except the embedding table, which is
    /// looked up, and the output layer even when it is the same table.
    pub const fn multiplied(&self) -> u64 {
        let head = if self.head == 0 { self.embedding } else { self.head };
        self.active() - self.embedding - self.head + head
    }

    const fn outside_experts(&self) -> u64 {
        self.embedding
            + self.head
            + self.attention
            + self.dense
            + self.shared_experts
            + self.router
            + self.small
    }

    /// Bytes of all weights in the formats they are stored in.
    pub fn bytes(&self, stored: &Stored) -> f64 {
        let wide = (self.embedding + self.head + self.router + self.small) as f64;
        wide * stored.rest.bytes()
            + self.attention as f64 * stored.attention.bytes()
            + self.dense as f64 * stored.dense.bytes()
            + self.shared_experts as f64 * stored.shared_experts.bytes()
            + self.routed_experts as f64 * stored.routed_experts.bytes()
    }
}

impl Architecture {
    /// Counts the weights.
    pub fn parameters(&self) -> Parameters {
        let hidden = u64::from(self.hidden);
        let caching = u64::from(self.layers.full + self.layers.sliding);
        let linear =
            self.linear.map_or(0, |linear| u64::from(self.layers.linear) * linear.weights(hidden));
        let block = |width: u32| u64::from(self.feed_forward.matrices) * hidden * u64::from(width);
        let embedding = u64::from(self.vocab) * hidden;
        let mut parameters = Parameters {
            embedding,
            head: if self.tied { 0 } else { embedding },
            attention: caching * self.attention.weights(hidden) + linear,
            dense: u64::from(self.feed_forward.dense_layers) * block(self.feed_forward.dense_width),
            routed_experts: 0,
            shared_experts: 0,
            router: 0,
            small: self.norm_weights(hidden) + caching * self.attention.biases(hidden),
            visited_experts: 0,
        };
        if let Some(experts) = self.feed_forward.experts {
            let layers = u64::from(experts.layers);
            let routed = u64::from(experts.routed);
            parameters.routed_experts = layers * routed * block(experts.width);
            parameters.visited_experts = layers * u64::from(experts.active) * block(experts.width);
            parameters.shared_experts = layers * block(experts.shared_width);
            parameters.router = layers * routed * hidden;
            parameters.small += layers * experts.biases(hidden);
        }
        parameters
    }

    fn norm_weights(&self, hidden: u64) -> u64 {
        let layers = u64::from(self.layers.total());
        let vectors = layers * u64::from(self.norms.per_layer) + 1;
        let each = if self.norms.bias { 2 } else { 1 };
        vectors * hidden * each + layers * u64::from(self.norms.query_key)
    }
}

impl Attention {
    /// Weights of the projections in one layer.
    pub fn weights(&self, hidden: u64) -> u64 {
        match *self {
            Self::Grouped { heads, kv_heads, head_dim, output_gate, .. } => {
                let queries = u64::from(heads) * u64::from(head_dim);
                let gate = if output_gate { queries } else { 0 };
                let cached = 2 * u64::from(kv_heads) * u64::from(head_dim);
                hidden * (queries + gate + cached) + queries * hidden
            }
            Self::Latent { heads, query_rank, kv_rank, nope_dim, rope_dim, value_dim, indexer } => {
                let [heads, kv_rank] = [heads, kv_rank].map(u64::from);
                let [nope, rope, value] = [nope_dim, rope_dim, value_dim].map(u64::from);
                let queries = match query_rank.map(u64::from) {
                    Some(rank) => hidden * rank + rank * heads * (nope + rope),
                    None => hidden * heads * (nope + rope),
                };
                let index = indexer.map_or(0, |indexer| {
                    let [heads, dim] = [indexer.heads, indexer.head_dim].map(u64::from);
                    let from = query_rank.map_or(hidden, u64::from);
                    from * heads * dim + hidden * dim + hidden * heads
                });
                let compress = hidden * (kv_rank + rope);
                let expand = kv_rank * heads * (nope + value);
                queries + compress + expand + heads * value * hidden + index
            }
        }
    }

    fn biases(&self, hidden: u64) -> u64 {
        match *self {
            Self::Grouped { heads, kv_heads, head_dim, qkv_bias, output_bias, .. } => {
                let qkv = u64::from(heads + 2 * kv_heads) * u64::from(head_dim);
                (if qkv_bias { qkv } else { 0 }) + (if output_bias { hidden } else { 0 })
            }
            // The latent vectors are normed.
            Self::Latent { query_rank, kv_rank, .. } => {
                u64::from(query_rank.unwrap_or(0) + kv_rank)
            }
        }
    }
}

impl Experts {
    fn biases(&self, hidden: u64) -> u64 {
        let gate = if self.shared_gate { hidden } else { 0 };
        if self.bias {
            gate + u64::from(self.routed) * (2 * u64::from(self.width) + hidden + 1)
        } else {
            gate
        }
    }
}

impl LinearLayers {
    /// Weights of one layer: projections in and out, convolution, and the gates' vectors.
    fn weights(&self, hidden: u64) -> u64 {
        let values = u64::from(self.value_heads * self.value_dim);
        let channels = u64::from(self.channels());
        let gates = u64::from(self.gates * self.value_heads);
        let project_in = hidden * (channels + values + gates);
        project_in
            + channels * u64::from(self.convolution)
            + values * hidden
            + 2 * u64::from(self.value_heads)
            + u64::from(self.value_dim)
    }
}
