"""Re-packs the sentence embedding model all-MiniLM-L6-v2 from safetensors as a gguf file that llama.cpp loads.

usage: minilm_gguf.py FOLDER f16|q8_0 OUT.gguf

FOLDER holds config.json, vocab.txt and model.safetensors. Matrices are rounded to f16, or encoded as q8_0; norms, biases and the
two small embedding tables stay f32. A tensor that is not expected is refused.
"""
import json
import os
import sys

import numpy as np

from randmodel import files

FILE_TYPE = {'f16': 1, 'q8_0': 7}
POOLING_MEAN = 1
NORMAL, CONTROL, UNUSED = 1, 3, 5
WORD_START = '\u2581'

EMBEDDINGS = {
    'word_embeddings': 'token_embd', 'position_embeddings': 'position_embd', 'token_type_embeddings': 'token_types',
    'LayerNorm': 'token_embd_norm',
}
LAYER = {
    'attention.self.query': 'attn_q', 'attention.self.key': 'attn_k', 'attention.self.value': 'attn_v',
    'attention.output.dense': 'attn_output', 'attention.output.LayerNorm': 'attn_output_norm',
    'intermediate.dense': 'ffn_up', 'output.dense': 'ffn_down', 'output.LayerNorm': 'layer_output_norm',
}
STAY_F32 = ('position_embd', 'token_types')


def tensor_name(name):
    """llama.cpp's name, None for what an embedding does not need."""
    if name.startswith('pooler.') or name.endswith('position_ids'):
        return None
    layer, end = name.rsplit('.', 1)
    if layer.startswith('encoder.layer.'):
        _, _, number, part = layer.split('.', 3)
        return f'blk.{number}.{LAYER[part]}.{end}'
    return f'{EMBEDDINGS[layer.removeprefix("embeddings.")]}.{end}'


def tensors(source, quantised):
    for name, array in source.items():
        to = tensor_name(name)
        if to is None:
            continue
        matrix = array.ndim == 2 and not to.startswith(STAY_F32)
        if matrix and quantised:
            # Rounded once only: the writer encodes from f32.
            yield to, array.astype(np.float32), files.GGUF_Q8_0
        else:
            yield to, array.astype(np.float16 if matrix else np.float32), None


def vocabulary(path, size):
    """Pieces as llama.cpp wants them (a mark in front of words instead of one in front of continuations) and their kinds."""
    with open(path, encoding='utf-8') as f:
        words = f.read().split('\n')[:size]
    if len(words) != size:
        raise ValueError(f'{path}: {len(words)} words, {size} wanted')
    pieces, kinds = [], []
    for word in words:
        special = word.startswith('[') and word.endswith(']')
        kinds.append(NORMAL if not special else UNUSED if word.startswith('[unused') else CONTROL)
        pieces.append(word if special else word[2:] if word.startswith('##') else WORD_START + word)
    return words, pieces, kinds


def keys(folder, kind):
    with open(os.path.join(folder, 'config.json'), encoding='utf-8') as f:
        config = json.load(f)
    words, pieces, kinds = vocabulary(os.path.join(folder, 'vocab.txt'), config['vocab_size'])
    tokens = {'unknown': '[UNK]', 'seperator': '[SEP]', 'padding': '[PAD]', 'mask': '[MASK]', 'bos': '[CLS]', 'eos': '[SEP]',
              'cls': '[CLS]'}  # "seperator" is how the format spells it
    return [
        ('general.name', 'all-MiniLM-L6-v2'),
        ('general.file_type', FILE_TYPE[kind]),
        ('bert.context_length', config['max_position_embeddings']),
        ('bert.embedding_length', config['hidden_size']),
        ('bert.feed_forward_length', config['intermediate_size']),
        ('bert.block_count', config['num_hidden_layers']),
        ('bert.attention.head_count', config['num_attention_heads']),
        ('bert.attention.layer_norm_epsilon', float(config['layer_norm_eps'])),
        ('bert.attention.causal', False),
        ('bert.pooling_type', POOLING_MEAN),
        ('tokenizer.ggml.model', 'bert'),
        ('tokenizer.ggml.pre', 'default'),
        ('tokenizer.ggml.tokens', pieces),
        ('tokenizer.ggml.token_type', kinds),
        ('tokenizer.ggml.token_type_count', config['type_vocab_size']),
        *((f'tokenizer.ggml.{name}_token_id', words.index(word)) for name, word in tokens.items()),
    ]


def main(folder, kind, out):
    source = files.read_safetensors(os.path.join(folder, 'model.safetensors'))
    files.write_gguf(out, tensors(source, kind == 'q8_0'), 'bert', keys=keys(folder, kind))
    print(f'{kind}: {os.path.getsize(out) / 1e6:.1f} MB')


if __name__ == '__main__':
    if len(sys.argv) != 4 or sys.argv[2] not in FILE_TYPE:
        sys.exit(__doc__)
    main(*sys.argv[1:])
