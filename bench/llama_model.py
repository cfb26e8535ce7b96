#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""llama_model.py - writes a small model of random weights for llama.cpp (doc/llama.md)

    bench/llama_model.py FILE [--layers 8] [--width 1024] [--inner 3072]

The model is of type llama, in half precision, without a tokenizer. --inner is the width of the feed-forward layers. By
default the file has 240 MiB, and its larger weights have 2, 6 and 16 MiB. Needed: gguf and numpy.
"""
import argparse

import gguf
import numpy

HEAD, WORDS = 64, 8192


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument('file')
    arguments.add_argument('--layers', type=int, default=8)
    arguments.add_argument('--width', type=int, default=1024)
    arguments.add_argument('--inner', type=int, default=3072)
    given = arguments.parse_args()
    layers, width, inner = given.layers, given.width, given.inner
    random = numpy.random.default_rng(1)
    out = gguf.GGUFWriter(given.file, "llama")

    def add(name, *shape):
        weights = random.standard_normal(shape, dtype=numpy.float32) / 32
        out.add_tensor(name + ".weight", weights if len(shape) == 1 else weights.astype(numpy.float16))

    out.add_block_count(layers)
    out.add_context_length(2048)
    out.add_embedding_length(width)
    out.add_feed_forward_length(inner)
    out.add_head_count(width // HEAD)
    out.add_head_count_kv(width // HEAD)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_vocab_size(WORDS)
    out.add_tokenizer_model("none")
    out.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    add("token_embd", WORDS, width)
    add("output", WORDS, width)
    add("output_norm", width)
    for i in range(layers):
        for name in "attn_norm", "ffn_norm":
            add(f"blk.{i}.{name}", width)
        for name in "attn_q", "attn_k", "attn_v", "attn_output":
            add(f"blk.{i}.{name}", width, width)
        for name in "ffn_gate", "ffn_up":
            add(f"blk.{i}.{name}", inner, width)
        add(f"blk.{i}.ffn_down", width, inner)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


if __name__ == "__main__":
    main()
