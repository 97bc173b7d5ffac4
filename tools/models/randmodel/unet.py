"""The UNet of Stable Diffusion 1: channel multiples 1 2 4 4, two blocks a level, attention on the three finest."""
TEXT_WIDTH = 768
MULTIPLES = (1, 2, 4, 4)
BLOCKS = 2
ATTENTION_LEVELS = (0, 1, 2)
PREFIX = 'model.diffusion_model'


def _residual(net, name, inputs, outputs, embedding):
    net.norm(f'{name}.in_layers.0', inputs)
    net.conv(f'{name}.in_layers.2', inputs, outputs)
    net.linear(f'{name}.emb_layers.1', embedding, outputs)
    net.norm(f'{name}.out_layers.0', outputs)
    net.conv(f'{name}.out_layers.3', outputs, outputs, gain=0.5)
    if inputs != outputs:
        net.conv(f'{name}.skip_connection', inputs, outputs, 1)


def _transformer(net, name, width):
    net.norm(f'{name}.norm', width)
    net.conv(f'{name}.proj_in', width, width, 1)
    block = f'{name}.transformer_blocks.0'
    for attention, source in (('attn1', width), ('attn2', TEXT_WIDTH)):
        net.linear(f'{block}.{attention}.to_q', width, width, bias=False)
        net.linear(f'{block}.{attention}.to_k', source, width, bias=False)
        net.linear(f'{block}.{attention}.to_v', source, width, bias=False)
        net.linear(f'{block}.{attention}.to_out.0', width, width, gain=0.5)
    net.linear(f'{block}.ff.net.0.proj', width, 8 * width)
    net.linear(f'{block}.ff.net.2', 4 * width, width, gain=0.5)
    for i in (1, 2, 3):
        net.norm(f'{block}.norm{i}', width)
    net.conv(f'{name}.proj_out', width, width, 1, gain=0.5)


def build(net, base):
    """base: channels of the finest level, a multiple of 32."""
    embedding = 4 * base
    net.linear(f'{PREFIX}.time_embed.0', base, embedding)
    net.linear(f'{PREFIX}.time_embed.2', embedding, embedding)

    net.conv(f'{PREFIX}.input_blocks.0.0', 4, base)
    skips, width, index = [base], base, 1
    for level, multiple in enumerate(MULTIPLES):
        for _ in range(BLOCKS):
            block = f'{PREFIX}.input_blocks.{index}'
            _residual(net, f'{block}.0', width, multiple * base, embedding)
            width = multiple * base
            if level in ATTENTION_LEVELS:
                _transformer(net, f'{block}.1', width)
            skips.append(width)
            index += 1
        if level + 1 < len(MULTIPLES):
            net.conv(f'{PREFIX}.input_blocks.{index}.0.op', width, width)
            skips.append(width)
            index += 1

    _residual(net, f'{PREFIX}.middle_block.0', width, width, embedding)
    _transformer(net, f'{PREFIX}.middle_block.1', width)
    _residual(net, f'{PREFIX}.middle_block.2', width, width, embedding)

    index = 0
    for level in reversed(range(len(MULTIPLES))):
        for step in range(BLOCKS + 1):
            block = f'{PREFIX}.output_blocks.{index}'
            _residual(net, f'{block}.0', width + skips.pop(), MULTIPLES[level] * base, embedding)
            width = MULTIPLES[level] * base
            part = 1
            if level in ATTENTION_LEVELS:
                _transformer(net, f'{block}.1', width)
                part = 2
            if level > 0 and step == BLOCKS:
                net.conv(f'{block}.{part}.conv', width, width)
            index += 1
    net.norm(f'{PREFIX}.out.0', width)
    net.conv(f'{PREFIX}.out.2', base, 4)


def lora(net, shapes, rank):
    """Low-rank pairs for every attention matrix of the UNet and for one of its convolutions. shapes: name -> shape."""
    for name, shape in shapes.items():
        attention = '.attn' in name and len(shape) == 2
        if not name.endswith('.weight') or not (attention or name.endswith('middle_block.0.in_layers.2.weight')):
            continue
        base, window = name.removesuffix('.weight'), shape[2:]
        fan_in = shape[1] * (window[0] * window[1] if window else 1)
        net.tensor(f'{base}.lora_down.weight', (rank, shape[1], *window), (3.0 / fan_in) ** 0.5)
        net.tensor(f'{base}.lora_up.weight', (shape[0], rank, *((1, 1) if window else ())), 0.5 * (3.0 / rank) ** 0.5)
        net.tensor(f'{base}.alpha', (), 0.0, float(rank), True)
