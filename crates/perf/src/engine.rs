//! The serving engines whose speed the model predicts.

pub use flyball_engines::Engine;

/// Those whose coefficients were fitted to published measurements.
pub const PREDICTED: [Engine; 3] = [Engine::Vllm, Engine::Sglang, Engine::TensorRtLlm];
