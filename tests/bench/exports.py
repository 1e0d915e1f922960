"""MiniGPT in the formats of other engines: a transformers GPT-2, CTranslate2's, llama.cpp's GGUF.

MiniGPT is a GPT-2 without biases, so all of them hold the same weights; where a format insists on
biases they are zeros.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from course_lib.given.minigpt import MiniGPT
from course_lib.given.tokenizer import Tokenizer

MATRICES = {"qkv": "attention.qkv", "out": "attention.out", "up": "mlp_up", "down": "mlp_down"}


def arrays(model: MiniGPT) -> dict[str, np.ndarray]:
    """All weights, row after row, by the names of MiniGPT."""
    return {k: np.ascontiguousarray(v.float().numpy()) for k, v in model.state_dict().items()}


def pieces() -> list[str]:
    """The tokens as the vocabulary writes them, by id."""
    inner = Tokenizer.from_pretrained()._inner
    return [inner.id_to_token(i) or f"<{i}>" for i in range(inner.get_vocab_size())]


def to_ctranslate2(model: MiniGPT, folder: Path, quantization: str | None = None) -> Path:
    """Write the model as CTranslate2 loads it; returns `folder`."""
    import ctranslate2

    common = ctranslate2.specs.common_spec
    w = arrays(model)
    spec = ctranslate2.specs.TransformerDecoderModelSpec.from_config(
        model.n_layers, model.n_heads, pre_norm=True, activation=common.Activation.GELUTanh
    )
    decoder = spec.decoder
    decoder.scale_embeddings = False
    decoder.embeddings.weight = w["token_embedding.weight"]
    decoder.position_encodings.encodings = w["position_embedding.weight"]
    decoder.projection.weight = w["token_embedding.weight"]

    def set_norm(target: object, name: str) -> None:
        target.gamma, target.beta = w[f"{name}.weight"], w[f"{name}.bias"]  # type: ignore[attr-defined]

    set_norm(decoder.layer_norm, "final_norm")
    for layer, part in enumerate(decoder.layer):
        name = f"blocks.{layer}"
        set_norm(part.self_attention.layer_norm, f"{name}.attention_norm")
        set_norm(part.ffn.layer_norm, f"{name}.mlp_norm")
        part.self_attention.linear[0].weight = w[f"{name}.attention.qkv.weight"]
        part.self_attention.linear[1].weight = w[f"{name}.attention.out.weight"]
        part.ffn.linear_0.weight = w[f"{name}.mlp_up.weight"]
        part.ffn.linear_1.weight = w[f"{name}.mlp_down.weight"]
    spec.register_vocabulary(pieces())
    spec.config.bos_token = spec.config.eos_token = spec.config.unk_token = pieces()[0]
    spec.validate()
    spec.optimize(quantization=quantization)
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))
    return folder


def to_gguf(model: MiniGPT, path: Path, *, q8: bool = False) -> Path:
    """Write the model as llama.cpp loads it, matrices in float32 or in 8 bits; returns `path`."""
    import gguf

    w, config = arrays(model), model.config
    writer = gguf.GGUFWriter(path, "gpt2")
    writer.add_context_length(config.block_size)
    writer.add_embedding_length(config.width)
    writer.add_feed_forward_length(4 * config.width)
    writer.add_block_count(config.n_layers)
    writer.add_head_count(config.n_heads)
    writer.add_layer_norm_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(pieces())
    writer.add_token_types([1] * config.vocab_size)
    writer.add_token_merges(["t h"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)

    def matrix(name: str, weight: np.ndarray) -> None:
        if not q8:
            return writer.add_tensor(name, weight)
        kind = gguf.GGMLQuantizationType.Q8_0
        return writer.add_tensor(name, gguf.quants.quantize(weight, kind), raw_dtype=kind)

    def vector(name: str, weight: np.ndarray) -> None:
        writer.add_tensor(name, weight)

    matrix("token_embd.weight", w["token_embedding.weight"])
    matrix("output.weight", w["token_embedding.weight"])
    vector("position_embd.weight", w["position_embedding.weight"])
    vector("output_norm.weight", w["final_norm.weight"])
    vector("output_norm.bias", w["final_norm.bias"])
    names = {"qkv": "attn_qkv", "out": "attn_output", "up": "ffn_up", "down": "ffn_down"}
    for layer in range(config.n_layers):
        for norm, theirs in (("attention_norm", "attn_norm"), ("mlp_norm", "ffn_norm")):
            for part in ("weight", "bias"):
                vector(f"blk.{layer}.{theirs}.{part}", w[f"blocks.{layer}.{norm}.{part}"])
        for short, mine in MATRICES.items():
            weight = w[f"blocks.{layer}.{mine}.weight"]
            matrix(f"blk.{layer}.{names[short]}.weight", weight)
            vector(f"blk.{layer}.{names[short]}.bias", np.zeros(len(weight), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
