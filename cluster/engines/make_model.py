"""Makes a tiny language model with random weights, once for vLLM and once for llama-server.

Both shapes hold the same tokenizer and the same numbers, so a short greedy answer is the same
whichever engine gave it. Nothing is downloaded: the tokenizer learns from the manual that comes
with Python. The same Python gives the same bytes.

    python make_model.py FOLDER [--size nano|small]

writes FOLDER/SIZE.gguf and FOLDER/SIZE-hf/. Needs gguf, numpy, safetensors and tokenizers.
"""

import argparse
import dataclasses
import json
import pathlib
import pydoc_data.topics

import gguf
import numpy
import safetensors.numpy
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

VOCABULARY = 4096
CONTEXT = 32_768
NORM_EPSILON = 1e-6
ROPE_BASE = 10_000.0
SEED = 6

PAD, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
SPECIAL = [PAD, START, END]

# How Qwen2 cuts text before merging bytes. Both engines apply this one by themselves for models
# of this type and ignore any other, so it has to be the one that the merges were learned with.
QWEN2_PIECES = "|".join(
    [
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)",
        r"[^\r\n\p{L}\p{N}]?\p{L}+",
        r"\p{N}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)

CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{ '" + START + "' + message['role'] + '\\n' + message['content'] + '" + END + "\\n' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '" + START + "assistant\\n' }}{%- endif -%}"
)


@dataclasses.dataclass(frozen=True)
class Shape:
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    feed_forward: int

    @property
    def head(self):
        # vLLM on a CPU refuses heads narrower than 32.
        return self.hidden // self.heads


SHAPES = {
    # 1.3 million parameters: answers at thousands of tokens a second on one core.
    "nano": Shape(hidden=128, layers=2, heads=4, kv_heads=2, feed_forward=256),
    # 27.8 million: slow enough that queues last and can be looked at.
    "small": Shape(hidden=512, layers=8, heads=8, kv_heads=4, feed_forward=1408),
}


def learn_tokenizer():
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    pieces = pre_tokenizers.Split(tokenizers.Regex(QWEN2_PIECES), "isolated")
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pieces, to_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    manual = pydoc_data.topics.topics
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=SPECIAL,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator((manual[topic] for topic in sorted(manual)), trainer)
    if tokenizer.get_vocab_size() != VOCABULARY:
        raise SystemExit(f"the manual gave only {tokenizer.get_vocab_size()} tokens")
    return tokenizer


def draw_weights(shape):
    """All tensors under llama.cpp's names, in the order in which they are drawn."""
    chance = numpy.random.default_rng(SEED)

    def matrix(rows, columns, gain=1.0):
        drawn = chance.standard_normal((rows, columns), dtype=numpy.float32)
        return (drawn * (gain / numpy.sqrt(columns))).astype(numpy.float16)

    ones = numpy.ones(shape.hidden, numpy.float16)
    queries, keys = shape.heads * shape.head, shape.kv_heads * shape.head
    weights = {
        "token_embd.weight": matrix(VOCABULARY, shape.hidden, gain=numpy.sqrt(shape.hidden)),
        "output_norm.weight": ones,
        # A gain above one sharpens the choice of the next token: rounding then changes it less.
        "output.weight": matrix(VOCABULARY, shape.hidden, gain=3.0),
    }
    for layer in range(shape.layers):
        block = {
            "attn_norm.weight": ones,
            "ffn_norm.weight": ones,
            "attn_q.weight": matrix(queries, shape.hidden),
            "attn_k.weight": matrix(keys, shape.hidden),
            "attn_v.weight": matrix(keys, shape.hidden),
            "attn_output.weight": matrix(shape.hidden, queries),
            "ffn_gate.weight": matrix(shape.feed_forward, shape.hidden),
            "ffn_up.weight": matrix(shape.feed_forward, shape.hidden),
            "ffn_down.weight": matrix(shape.hidden, shape.feed_forward),
        }
        for part, width in (("q", queries), ("k", keys), ("v", keys)):
            block[f"attn_{part}.bias"] = numpy.zeros(width, numpy.float16)
        weights.update({f"blk.{layer}.{name}": tensor for name, tensor in block.items()})
    return weights


# llama.cpp's names and those that vLLM reads.
WHOLE_MODEL = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
IN_A_LAYER = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def name_for_vllm(name):
    if name in WHOLE_MODEL:
        return WHOLE_MODEL[name]
    _, layer, part, kind = name.split(".")
    return f"model.layers.{layer}.{IN_A_LAYER[part]}.{kind}"


def write_for_vllm(folder, shape, tokenizer, weights):
    folder.mkdir(parents=True, exist_ok=True)

    def write_json(name, content):
        (folder / name).write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")

    end = tokenizer.token_to_id(END)
    tokenizer.save(str(folder / "tokenizer.json"))
    write_json(
        "tokenizer_config.json",
        {
            "tokenizer_class": "Qwen2Tokenizer",
            "chat_template": CHAT_TEMPLATE,
            "model_max_length": CONTEXT,
            "clean_up_tokenization_spaces": False,
            "bos_token": None,
            "eos_token": END,
            "pad_token": PAD,
            "unk_token": None,
        },
    )
    write_json(
        "config.json",
        {
            "architectures": ["Qwen2ForCausalLM"],
            "model_type": "qwen2",
            "torch_dtype": "float16",
            "vocab_size": VOCABULARY,
            "max_position_embeddings": CONTEXT,
            "hidden_size": shape.hidden,
            "head_dim": shape.head,
            "num_hidden_layers": shape.layers,
            "num_attention_heads": shape.heads,
            "num_key_value_heads": shape.kv_heads,
            "intermediate_size": shape.feed_forward,
            "hidden_act": "silu",
            "rms_norm_eps": NORM_EPSILON,
            "rope_theta": ROPE_BASE,
            "tie_word_embeddings": False,
            "use_sliding_window": False,
            "bos_token_id": None,
            "eos_token_id": end,
        },
    )
    pad = tokenizer.token_to_id(PAD)
    write_json("generation_config.json", {"eos_token_id": end, "pad_token_id": pad})
    renamed = {name_for_vllm(name): tensor for name, tensor in weights.items()}
    safetensors.numpy.save_file(renamed, folder / "model.safetensors", metadata={"format": "pt"})


def write_for_llama(path, size, shape, tokenizer, weights):
    learned = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(learned["vocab"], key=learned["vocab"].get)
    kinds = gguf.TokenType
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_name(f"random-{size}")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(shape.hidden)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_layer_norm_rms_eps(NORM_EPSILON)
    writer.add_rope_freq_base(ROPE_BASE)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([kinds.CONTROL if t in SPECIAL else kinds.NORMAL for t in tokens])
    merges = learned["merges"]
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in merges])
    writer.add_bos_token_id(tokenizer.token_to_id(PAD))
    writer.add_pad_token_id(tokenizer.token_to_id(PAD))
    writer.add_eos_token_id(tokenizer.token_to_id(END))
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)
    for name, tensor in weights.items():
        # llama.cpp takes norms and biases as 32-bit numbers only.
        writer.add_tensor(name, tensor if tensor.ndim > 1 else tensor.astype(numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--size", choices=SHAPES, default="nano")
    chosen = arguments.parse_args()
    folder, size = chosen.folder, chosen.size
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer, weights = learn_tokenizer(), draw_weights(SHAPES[size])
    write_for_vllm(folder / f"{size}-hf", SHAPES[size], tokenizer, weights)
    write_for_llama(folder / f"{size}.gguf", size, SHAPES[size], tokenizer, weights)
    print(f"{size}: {sum(tensor.size for tensor in weights.values())} parameters")


if __name__ == "__main__":
    main()
