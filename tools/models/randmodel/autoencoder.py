"""Autoencoders: the full one of Stable Diffusion 1, and the tiny one that stands in for it."""
PREFIX = 'first_stage_model'
MULTIPLES = (1, 2, 4, 4)


def _residual(net, name, inputs, outputs):
    net.norm(f'{name}.norm1', inputs)
    net.conv(f'{name}.conv1', inputs, outputs)
    net.norm(f'{name}.norm2', outputs)
    net.conv(f'{name}.conv2', outputs, outputs, gain=0.5)
    if inputs != outputs:
        net.conv(f'{name}.nin_shortcut', inputs, outputs, 1)


def _middle(net, name, width):
    _residual(net, f'{name}.block_1', width, width)
    net.norm(f'{name}.attn_1.norm', width)
    for part in ('q', 'k', 'v'):
        net.conv(f'{name}.attn_1.{part}', width, width, 1)
    net.conv(f'{name}.attn_1.proj_out', width, width, 1, gain=0.5)
    _residual(net, f'{name}.block_2', width, width)


def full(net, decoder_base, latent=4):
    """decoder_base: channels of the decoder's finest level. The encoder's are 128, the client has no other."""
    name, base = f'{PREFIX}.encoder', 128
    net.conv(f'{name}.conv_in', 3, base)
    width = base
    for level, multiple in enumerate(MULTIPLES):
        for i in range(2):
            _residual(net, f'{name}.down.{level}.block.{i}', width, multiple * base)
            width = multiple * base
        if level + 1 < len(MULTIPLES):
            net.conv(f'{name}.down.{level}.downsample.conv', width, width)
    _middle(net, f'{name}.mid', width)
    net.norm(f'{name}.norm_out', width)
    net.conv(f'{name}.conv_out', width, 2 * latent)

    name, base = f'{PREFIX}.decoder', decoder_base
    width = MULTIPLES[-1] * base
    net.conv(f'{name}.conv_in', latent, width)
    _middle(net, f'{name}.mid', width)
    for level in reversed(range(len(MULTIPLES))):
        for i in range(3):
            _residual(net, f'{name}.up.{level}.block.{i}', width, MULTIPLES[level] * base)
            width = MULTIPLES[level] * base
        if level > 0:
            net.conv(f'{name}.up.{level}.upsample.conv', width, width)
    net.norm(f'{name}.norm_out', width)
    net.conv(f'{name}.conv_out', width, 3, gain=0.4)
    net.conv(f'{PREFIX}.quant_conv', 2 * latent, 2 * latent, 1)
    net.conv(f'{PREFIX}.post_quant_conv', latent, latent, 1)


def tiny(net, latent):
    """latent: 4 channels for Stable Diffusion 1, 16 for Z-Image."""
    width, root2 = 64, 2 ** 0.5

    def block(name):
        net.conv(f'{name}.conv.0', width, width, gain=root2)
        net.conv(f'{name}.conv.2', width, width, gain=root2)
        net.conv(f'{name}.conv.4', width, width, gain=0.5)

    # The numbers count every layer; those without tensors (activations, resizing) leave gaps.
    net.conv('encoder.layers.0', 3, width)
    block('encoder.layers.1')
    at = 2
    for _ in range(3):
        net.conv(f'encoder.layers.{at}', width, width, bias=False)
        for i in (1, 2, 3):
            block(f'encoder.layers.{at + i}')
        at += 4
    net.conv(f'encoder.layers.{at}', width, latent)

    net.conv('decoder.layers.0', latent, width)
    at = 2
    for _ in range(3):
        for i in (0, 1, 2):
            block(f'decoder.layers.{at + i}')
        net.conv(f'decoder.layers.{at + 4}', width, width, bias=False)
        at += 5
    block(f'decoder.layers.{at}')
    net.conv(f'decoder.layers.{at + 1}', width, 3, gain=0.3, offset=0.5)
