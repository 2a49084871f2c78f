#!/usr/bin/env python3
"""Writes two decoders that make one token, gpt2_decode.onnx and llama_decode.onnx, with random weights and inputs beside them.

usage: python benches/decode_models.py FOLDER

Both have seen 127 tokens: what these left is an input, and with what the new one leaves an output. GPT-2 is the small one, of 12 layers;
the other one is of Llama's kind: 12 layers of 1,024, 16 heads that share 4 for keys and values, 32,000 words. Needs the packages torch,
transformers and onnxscript.
"""

import pathlib
import sys

import numpy as np
import torch
import transformers
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

PAST = 127


def attention(q, past_k, past_v, k, v):
    """What one token sees of those before it and of itself; heads that share keys lie side by side."""
    k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
    shared = q.view(1, k.shape[1], -1, q.shape[-1])
    seen = torch.softmax(shared @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, -1) @ v
    return seen.reshape(1, 1, -1), k, v


class Gpt2(torch.nn.Module):
    def __init__(self):
        super().__init__()
        whole = transformers.GPT2LMHeadModel(transformers.GPT2Config(attn_implementation="eager"))
        self.body, self.head = whole.transformer, whole.lm_head
        self.layers, self.heads, self.lanes = len(self.body.h), whole.config.n_head, 64

    def forward(self, ids, past_k, past_v):
        x = self.body.wte(ids) + self.body.wpe(torch.full_like(ids, PAST))
        ks, vs = [], []
        for at, block in enumerate(self.body.h):
            q, k, v = block.attn.c_attn(block.ln_1(x)).split(self.heads * self.lanes, dim=2)
            q, k, v = (each.view(1, 1, self.heads, self.lanes).transpose(1, 2) for each in (q, k, v))
            seen, k, v = attention(q, past_k[at], past_v[at], k, v)
            ks.append(k)
            vs.append(v)
            x = x + block.attn.c_proj(seen)
            x = x + block.mlp(block.ln_2(x))
        return self.head(self.body.ln_f(x)), torch.stack(ks), torch.stack(vs)


class Llama(torch.nn.Module):
    def __init__(self):
        super().__init__()
        config = transformers.LlamaConfig(
            vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=12,
            num_attention_heads=16, num_key_value_heads=4, attn_implementation="eager",
        )
        whole = transformers.LlamaForCausalLM(config)
        self.body, self.head = whole.model, whole.lm_head
        self.layers, self.heads, self.lanes = len(self.body.layers), config.num_key_value_heads, 64

    def forward(self, ids, past_k, past_v):
        x = self.body.embed_tokens(ids)
        cos, sin = self.body.rotary_emb(x, torch.full_like(ids, PAST))
        ks, vs = [], []
        for at, block in enumerate(self.body.layers):
            y, own = block.input_layernorm(x), block.self_attn
            q, k, v = (each(y).view(1, 1, -1, self.lanes).transpose(1, 2) for each in (own.q_proj, own.k_proj, own.v_proj))
            q, k = apply_rotary_pos_emb(q, k, cos, sin)
            seen, k, v = attention(q, past_k[at], past_v[at], k, v)
            ks.append(k)
            vs.append(v)
            x = x + own.o_proj(seen)
            x = x + block.mlp(block.post_attention_layernorm(x))
        return self.head(self.body.norm(x)), torch.stack(ks), torch.stack(vs)


def main():
    folder = pathlib.Path(sys.argv[1])
    names = ["ids", "past_k", "past_v"]
    for name, kind in [("gpt2_decode", Gpt2), ("llama_decode", Llama)]:
        torch.manual_seed(1)
        model = kind().eval()
        past = [torch.randn(model.layers, 1, model.heads, PAST, model.lanes) * 0.3 for _ in range(2)]
        inputs = (torch.tensor([[1234]]), *past)
        with torch.no_grad():
            torch.onnx.export(model, inputs, folder / f"{name}.onnx", input_names=names, opset_version=18, dynamo=True, external_data=False)
        np.savez(folder / f"{name}.npz", **{name: each.numpy() for name, each in zip(names, inputs)})


if __name__ == "__main__":
    main()
