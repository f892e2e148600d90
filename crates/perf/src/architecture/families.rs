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
    /// Layers with a state are Mamba's.
    pub(super) mamba: bool,
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
    mamba: false,
};

const QWEN3: Family = Family { name: "qwen3", query_key_norm: QueryKeyNorm::PerHead, ..PLAIN };
const DEEPSEEK: Family = Family { name: "deepseek_v3", attention: Form::Latent, ..PLAIN };
const GEMMA: Family = Family { name: "gemma", tied: true, ..PLAIN };
const OLMO: Family = Family { name: "olmo2", query_key_norm: QueryKeyNorm::PerLayer, ..PLAIN };
// Attention and feed-forward block start from the same norm.
const COHERE: Family = Family { name: "cohere", tied: true, norms_per_layer: 1, ..PLAIN };

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
    Family { name: "phimoe", qkv_bias: true, output_bias: true, norm_bias: true, ..PLAIN },
    Family { name: "ministral3", window: Window::All, ..PLAIN },
    Family { name: "mistral4", ..DEEPSEEK },
    Family { name: "qwen2_5_vl", qkv_bias: true, ..PLAIN },
    Family { name: "glm", qkv_bias: true, ..PLAIN },
    Family { name: "glm4", norms_per_layer: 4, ..PLAIN },
    Family { name: "glm4v_text", norms_per_layer: 4, ..PLAIN },
    Family { name: "glm4_moe", ..PLAIN },
    Family { name: "glm4v_moe_text", ..PLAIN },
    Family { name: "glm4_moe_lite", ..DEEPSEEK },
    OLMO,
    Family { name: "olmo3", window: Window::Pattern, ..OLMO },
    Family { name: "olmoe", ..OLMO },
    COHERE,
    Family { name: "cohere2", window: Window::Pattern, ..COHERE },
    Family { name: "exaone4", window: Window::Pattern, ..QWEN3 },
    Family {
        name: "starcoder2",
        tied: true,
        qkv_bias: true,
        output_bias: true,
        gated: false,
        norm_bias: true,
        window: Window::All,
        ..PLAIN
    },
    Family { name: "nemotron", gated: false, norm_bias: true, ..PLAIN },
    Family { name: "nemotron_h", gated: false, norms_per_layer: 1, mamba: true, ..PLAIN },
    Family { name: "granite", ..PLAIN },
    Family { name: "internlm2", ..PLAIN },
    Family { name: "internlm3", ..PLAIN },
    Family { name: "mimo", qkv_bias: true, ..PLAIN },
    Family { name: "smollm3", ..PLAIN },
    Family { name: "solar_open", ..PLAIN },
    Family { name: "llama4_text", window: Window::Chunks, ..PLAIN },
];

pub(super) fn family(model_type: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.name == model_type)
}
