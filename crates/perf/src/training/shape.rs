//! What a model multiplies and moves, as plain numbers.

use crate::architecture::{Architecture, Attention};

/// Facts of a model that a step's time and memory depend on. Weights are those of matrices: norms
/// and biases are below a ten-thousandth of them and are left out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) layers: f64,
    pub(crate) hidden: f64,
    pub(crate) heads: f64,
    /// Width of all queries of a token, and of its keys.
    pub(crate) query_width: f64,
    pub(crate) key_width: f64,
    /// Mean of the widths over which scores and their use are multiplied.
    pub(crate) attention_width: f64,
    pub(crate) vocab: f64,
    /// Matrices of a feed-forward block: 3 when gated, 2 when plain.
    pub(crate) matrices: f64,
    pub(crate) dense_layers: f64,
    pub(crate) dense_width: f64,
    pub(crate) expert_layers: f64,
    pub(crate) experts: f64,
    pub(crate) active_experts: f64,
    pub(crate) expert_width: f64,
    pub(crate) shared_width: f64,
    tied: bool,
    full_layers: f64,
    window_layers: f64,
    window: f64,
    /// Weights of the layers that one token is multiplied with.
    pub(crate) linear: f64,
    /// Weights of the output layer.
    pub(crate) head: f64,
    /// All weights.
    pub(crate) total: f64,
    /// Of them, in routed experts.
    pub(crate) routed: f64,
    /// Weights of attention and router in one layer.
    pub(crate) attention_weights: f64,
}

impl Shape {
    pub(crate) fn of(model: &Architecture) -> Self {
        let parameters = model.parameters();
        let head = if model.tied { parameters.embedding } else { parameters.head };
        let experts = model.feed_forward.experts;
        let expert = |of: fn(&crate::architecture::Experts) -> u32| {
            experts.as_ref().map_or(0.0, |experts| f64::from(of(experts)))
        };
        let (query_width, key_width, attention_width) = widths(&model.attention);
        let layers = f64::from(model.layers.total());
        let active = parameters.attention
            + parameters.dense
            + parameters.visited_experts
            + parameters.shared_experts
            + parameters.router;
        Self {
            layers,
            hidden: f64::from(model.hidden),
            heads: f64::from(model.attention.heads()),
            query_width,
            key_width,
            attention_width,
            vocab: f64::from(model.vocab),
            matrices: f64::from(model.feed_forward.matrices),
            dense_layers: f64::from(model.feed_forward.dense_layers),
            dense_width: f64::from(model.feed_forward.dense_width),
            expert_layers: expert(|experts| experts.layers),
            experts: expert(|experts| experts.routed),
            active_experts: expert(|experts| experts.active),
            expert_width: expert(|experts| experts.width),
            shared_width: expert(|experts| experts.shared_width),
            tied: model.tied,
            full_layers: f64::from(model.layers.full),
            window_layers: f64::from(model.layers.sliding),
            window: f64::from(model.layers.window),
            linear: active as f64,
            head: head as f64,
            total: (parameters.total() - parameters.small) as f64,
            routed: parameters.routed_experts as f64,
            attention_weights: (parameters.attention + parameters.router) as f64 / layers.max(1.0),
        }
    }

    /// Tables of the vocabulary: one when the output layer is the embedding, else two.
    pub(crate) fn tables(&self) -> f64 {
        if self.tied { 1.0 } else { 2.0 }
    }

    /// Tokens that a token attends to, summed over layers: half of the sequence on average, or the
    /// window.
    pub(super) fn attended(&self, sequence: f64) -> f64 {
        let half = sequence / 2.0;
        self.full_layers * half + self.window_layers * half.min(self.window)
    }

    /// Share of the linear operations in the down projections of the dense layers.
    pub(super) fn down_share(&self) -> f64 {
        self.dense_layers * self.hidden * self.dense_width / self.linear
    }

    /// Share of the linear operations in every second matrix product: keys, output, and one of the
    /// feed-forward block.
    pub(super) fn second_products_share(&self) -> f64 {
        let widths = self.layers * (self.key_width + self.query_width)
            + self.dense_layers * self.dense_width
            + self.expert_layers * (self.active_experts * self.expert_width + self.shared_width);
        self.hidden * widths / self.linear
    }
}

fn widths(attention: &Attention) -> (f64, f64, f64) {
    match *attention {
        Attention::Grouped { heads, kv_heads, head_dim, .. } => {
            let [heads, kv_heads, dim] = [heads, kv_heads, head_dim].map(f64::from);
            (heads * dim, kv_heads * dim, heads * dim)
        }
        Attention::Latent { heads, nope_dim, rope_dim, value_dim, .. } => {
            let [heads, key, value] = [heads, nope_dim + rope_dim, value_dim].map(f64::from);
            // Keys are expanded to all heads when training.
            (heads * key, heads * key, heads * (key + value) / 2.0)
        }
    }
}
