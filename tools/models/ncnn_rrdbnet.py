"""Re-packs an RRDBNet upscaler from ncnn's .param/.bin pair as safetensors, under the tensor names of its training code.

usage: ncnn_rrdbnet.py MODEL.param MODEL.bin OUT.safetensors

Values and their types (f16 weights, f32 biases) stay as they are. A file that is not laid out as expected is refused.
"""
import struct
import sys

import numpy as np

from randmodel import files

MAGIC = '7767517'
F16_TAG = 0x01306B47
CONVS_PER_BLOCK = 15  # three dense blocks of five convolutions
CONVS_AROUND = 6      # conv_first before the blocks, five after


def convolutions(param_text):
    """(outputs, kernel side, number of weights) of every convolution layer, in file order."""
    lines = param_text.splitlines()
    if not lines or lines[0].strip() != MAGIC:
        raise ValueError('not an ncnn .param file')
    found = []
    for line in lines[2:]:
        words = line.split()
        if not words or words[0] != 'Convolution':
            continue
        attr = dict(w.split('=', 1) for w in words[4:] if '=' in w)
        if attr.get('5') != '1':
            raise ValueError(f'{words[1]}: a convolution without bias')
        found.append((int(attr['0']), int(attr['1']), int(attr['6'])))
    return found


def names(count):
    """Tensor prefixes of an RRDBNet with that many convolutions."""
    blocks, rest = divmod(count - CONVS_AROUND, CONVS_PER_BLOCK)
    if rest or blocks < 1:
        raise ValueError(f'{count} convolutions do not make an RRDBNet')
    body = [f'body.{b}.rdb{r}.conv{c}' for b in range(blocks) for r in (1, 2, 3) for c in (1, 2, 3, 4, 5)]
    return ['conv_first', *body, 'conv_body', 'conv_up1', 'conv_up2', 'conv_hr', 'conv_last']


def repack(param_text, data):
    convs = convolutions(param_text)
    at, tensors = 0, {}
    for (outputs, side, count), name in zip(convs, names(len(convs))):
        (tag,) = struct.unpack_from('<I', data, at)
        at += 4
        if tag == F16_TAG:
            weight = np.frombuffer(data, '<f2', count, at)
            at += (2 * count + 3) // 4 * 4
        elif tag == 0:
            weight = np.frombuffer(data, '<f4', count, at)
            at += 4 * count
        else:
            raise ValueError(f'{name}: unknown storage tag {tag:#x} at byte {at - 4}')
        tensors[name + '.weight'] = weight.reshape(outputs, count // (outputs * side * side), side, side)
        tensors[name + '.bias'] = np.frombuffer(data, '<f4', outputs, at)
        at += 4 * outputs
    if at != len(data):
        raise ValueError(f'{len(data) - at} bytes left over')
    return tensors


def main(param, binary, out):
    with open(param, encoding='utf-8') as f, open(binary, 'rb') as g:
        tensors = repack(f.read(), g.read())
    files.write_safetensors(out, tensors.items())
    print(f'{out}: {len(tensors)} tensors, {sum(t.size for t in tensors.values()):,} values')


if __name__ == '__main__':
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
