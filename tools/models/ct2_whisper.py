"""Re-packs a Whisper model from CTranslate2's binary format as a file that whisper.cpp loads (f16).

usage: ct2_whisper.py MODEL.bin VOCABULARY.txt OUT.bin

Matrices keep their f16 values; biases, norms and position tables are widened to f32, as whisper.cpp wants them. CTranslate2 keeps
query, key and value of a self attention, and key and value of a cross attention, as one matrix: they are cut apart.
"""
import struct
import sys

import numpy as np

MAGIC, F32, F16 = 0x67676D6C, 0, 1
CT2_TYPES = {0: '<f4', 1: 'i1', 2: '<i2', 3: '<i4', 4: '<f2'}
HEAD = 64
RATE, FFT = 16000, 400


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from('<' + form, self.data, self.at)
        self.at += struct.calcsize('<' + form)
        return values if len(values) > 1 else values[0]

    def text(self):
        length = self.take('H')  # with the closing zero
        self.at += length
        return self.data[self.at - length:self.at - 1].decode()


def read_ct2(path):
    """name -> array"""
    with open(path, 'rb') as f:
        reader = Reader(f.read())
    version, spec = reader.take('I'), reader.text()
    if (version, spec) != (6, 'WhisperSpec'):
        raise ValueError(f'{path}: version {version} of {spec}, not version 6 of WhisperSpec')
    reader.take('I')
    found = {}
    for _ in range(reader.take('I')):
        name = reader.text()
        shape = [reader.take('I') for _ in range(reader.take('B'))]
        kind, size = np.dtype(CT2_TYPES[reader.take('B')]), reader.take('I')
        found[name] = np.frombuffer(reader.data, kind, size // kind.itemsize, reader.at).reshape(shape)
        reader.at += size
    for _ in range(reader.take('I')):
        alias, name = reader.text(), reader.text()
        found.setdefault(alias, found[name])
    if reader.at != len(reader.data):
        raise ValueError(f'{path}: {len(reader.data) - reader.at} bytes left over')
    return found


class Repack:
    """Fills `out` with tensors under whisper.cpp's names."""

    def __init__(self, source):
        self.source, self.out = source, {}

    def norm(self, to, name):
        self.out[to + '.weight'] = self.source[name + '/gamma']
        self.out[to + '.bias'] = self.source[name + '/beta']

    def linear(self, to, name):
        self.out[to + '.weight'] = self.source[name + '/weight']
        self.out[to + '.bias'] = self.source[name + '/bias']

    def attention(self, to, name, parts):
        """parts: which of query, key and value each joined matrix holds, in order."""
        for number, joined in enumerate(parts):
            weights = np.split(self.source[f'{name}/linear_{number}/weight'], len(joined))
            biases = np.split(self.source[f'{name}/linear_{number}/bias'], len(joined))
            for part, weight, bias in zip(joined, weights, biases):
                self.out[f'{to}.{part}.weight'] = weight
                if part != 'key':
                    self.out[f'{to}.{part}.bias'] = bias
                elif bias.any():
                    raise ValueError(f'{name}: a key with a bias')
        self.linear(to + '.out', f'{name}/linear_{len(parts)}')

    def side(self, side):
        """Returns the number of layers."""
        layers = 0
        while f'{side}/layer_{layers}/ffn/linear_0/weight' in self.source:
            name, to = f'{side}/layer_{layers}', f'{side}.blocks.{layers}'
            self.norm(to + '.attn_ln', name + '/self_attention/layer_norm')
            self.attention(to + '.attn', name + '/self_attention', [['query', 'key', 'value']])
            if side == 'decoder':
                self.norm(to + '.cross_attn_ln', name + '/attention/layer_norm')
                self.attention(to + '.cross_attn', name + '/attention', [['query'], ['key', 'value']])
            self.norm(to + '.mlp_ln', name + '/ffn/layer_norm')
            self.linear(to + '.mlp.0', name + '/ffn/linear_0')
            self.linear(to + '.mlp.2', name + '/ffn/linear_1')
            layers += 1
        self.out[side + '.positional_embedding'] = self.source[side + '/position_encodings/encodings']
        return layers


def mel_filters(bands):
    """Triangles of equal area on Slaney's mel scale (linear up to 1 kHz, then logarithmic), bands x (FFT / 2 + 1)."""
    steep = 27 / np.log(6.4)
    top = 15 + np.log(RATE / 2 / 1000) * steep
    mel = np.linspace(0, top, bands + 2)
    edges = np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) / steep))
    frequency = np.fft.rfftfreq(FFT, 1 / RATE)
    low, middle, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    triangle = np.minimum((frequency - low) / (middle - low), (high - frequency) / (high - middle))
    return (np.maximum(triangle, 0) * 2 / (high - low)).astype('<f4')


def bytes_of_letters():
    """GPT-2's vocabulary writes each byte as a printable letter: letter -> byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in plain]
    return {chr(b): b for b in plain} | {chr(256 + i): b for i, b in enumerate(rest)}


def tokens(path):
    letters = bytes_of_letters()
    with open(path, encoding='utf-8') as f:
        words = f.read().split('\n')
    # Special tokens follow the text's; whisper.cpp makes their names itself.
    return [bytes(letters[c] for c in word) for word in words[:words.index('<|endoftext|>')]]


def write(path, tensors, header, filters, words):
    with open(path, 'wb') as f:
        f.write(struct.pack('<I11i', MAGIC, *header))
        f.write(struct.pack('<2i', *filters.shape) + filters.tobytes())
        f.write(struct.pack('<i', len(words)))
        for word in words:
            f.write(struct.pack('<i', len(word)) + word)
        for name, array in tensors.items():
            if name in ('encoder.conv1.bias', 'encoder.conv2.bias'):
                array = array.reshape(-1, 1)
            wide = array.ndim < 2 or name.endswith('.bias') or name.endswith('positional_embedding')
            data = np.ascontiguousarray(array, '<f4' if wide else '<f2')
            text = name.encode()
            f.write(struct.pack('<3i', data.ndim, len(text), F32 if wide else F16))
            f.write(struct.pack(f'<{data.ndim}i', *reversed(data.shape)) + text + data.tobytes())


def main(model, vocabulary, out):
    repack = Repack(read_ct2(model))
    layers = {side: repack.side(side) for side in ('encoder', 'decoder')}
    repack.linear('encoder.conv1', 'encoder/conv1')
    repack.linear('encoder.conv2', 'encoder/conv2')
    repack.norm('encoder.ln_post', 'encoder/layer_norm')
    repack.norm('decoder.ln', 'decoder/layer_norm')
    embedding = repack.source['decoder/embeddings/weight']
    repack.out['decoder.token_embedding.weight'] = embedding
    vocabulary_size, width = embedding.shape
    bands = repack.out['encoder.conv1.weight'].shape[1]
    context = {side: repack.out[side + '.positional_embedding'].shape[0] for side in layers}
    header = [vocabulary_size]
    for side in ('encoder', 'decoder'):
        header += [context[side], width, width // HEAD, layers[side]]
    header += [bands, F16]
    write(out, repack.out, header, mel_filters(bands), tokens(vocabulary))
    print(f'{len(repack.out)} tensors, width {width}, layers {layers["encoder"]} and {layers["decoder"]}')


if __name__ == '__main__':
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
