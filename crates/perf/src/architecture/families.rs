//! What each family of models leaves out of its `config.json`, because its code knows it.

/// Facts about a `model_type` that its configuration does not state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family {
    pub(super) name: &'static str,
    /// Whether the output layer is the embedding, where the configuration is silent.
    pub(super) tied: bool,
    /// Biases on queries, keys and values, unless the configuration says otherwise.
    pub(super) qkv_bias: bool,
    /// Biases wherever there is a matrix (`attention_bias` covers the output as well).
    pub(super) output_bias: bool,
    pub(super) gated: bool,
    pub(super) norms_per_layer: u32,
    pub(super) norm_bias: bool,
    pub(super) query_key_norm: QueryKeyNorm,
    pub(super) attention: Form,
    pub(super) window: Window,
    pub(super) expert_bias: bool,
    pub(super) shared_gate: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueryKeyNorm {
    None,
    /// One vector of a head's width for queries and one for keys.
    PerHead,
    /// Vectors over all heads.
    PerLayer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Grouped,
    Latent,
}

/// Which layers see only a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Window {
    /// None, whatever `sliding_window` says (it is stored but not used).
    Never,
    /// All of them, if `sliding_window` is a number.
    All,
    /// As `layer_types` says, and without it every second layer.
    Alternate,
    /// As `layer_types` or `sliding_window_pattern` says.
    Pattern,
    /// Three of four layers, in chunks of `attention_chunk_size`.
    Chunks,
}

const PLAIN: Family = Family {
    name: "llama",
    tied: false,
    qkv_bias: false,
    output_bias: false,
    gated: true,
    norms_per_layer: 2,
    norm_bias: false,
    query_key_norm: QueryKeyNorm::None,
    attention: Form::Grouped,
    window: Window::Never,
    expert_bias: false,
    shared_gate: false,
};

const QWEN3: Family = Family { name: "qwen3", query_key_norm: QueryKeyNorm::PerHead, ..PLAIN };
const DEEPSEEK: Family = Family { name: "deepseek_v3", attention: Form::Latent, ..PLAIN };
const GEMMA: Family = Family { name: "gemma", tied: true, ..PLAIN };

/// Every family we can read, by `model_type` of the text part.
pub(super) const FAMILIES: &[Family] = &[
    PLAIN,
    Family { name: "mistral", window: Window::All, ..PLAIN },
    Family { name: "mixtral", window: Window::All, ..PLAIN },
    Family { name: "qwen2", qkv_bias: true, ..PLAIN },
    Family { name: "qwen2_moe", qkv_bias: true, shared_gate: true, ..PLAIN },
    QWEN3,
    Family { name: "qwen3_moe", ..QWEN3 },
    Family { name: "qwen3_vl_text", ..QWEN3 },
    Family { name: "qwen3_vl_moe_text", ..QWEN3 },
    Family { name: "qwen3_next", shared_gate: true, ..QWEN3 },
    Family { name: "qwen3_5_text", shared_gate: true, ..QWEN3 },
    Family { name: "qwen3_5_moe_text", shared_gate: true, ..QWEN3 },
    Family { name: "minimax_m2", query_key_norm: QueryKeyNorm::PerLayer, ..PLAIN },
    DEEPSEEK,
    Family { name: "deepseek_v2", ..DEEPSEEK },
    Family { name: "deepseek_v32", ..DEEPSEEK },
    Family { name: "kimi_k2", ..DEEPSEEK },
    Family { name: "glm_moe_dsa", ..DEEPSEEK },
    Family {
        name: "gpt_oss",
        qkv_bias: true,
        output_bias: true,
        expert_bias: true,
        window: Window::Alternate,
        ..PLAIN
    },
    GEMMA,
    Family { name: "gemma2", norms_per_layer: 4, window: Window::Alternate, ..GEMMA },
    Family {
        name: "gemma3_text",
        norms_per_layer: 4,
        query_key_norm: QueryKeyNorm::PerHead,
        window: Window::Pattern,
        ..GEMMA
    },
    Family { name: "phi3", window: Window::All, ..PLAIN },
    Family { name: "llama4_text", window: Window::Chunks, ..PLAIN },
];

pub(super) fn family(model_type: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.name == model_type)
}
