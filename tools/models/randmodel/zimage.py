"""The diffusion transformer of Z-Image."""
PREFIX = 'model.diffusion_model'
HEAD = 128
MODULATION = 256


def _block(net, name, width, modulated):
    # The feed-forward width is 8/3 of the model's, rounded up to a multiple of 256.
    inner = -(-(8 * width // 3) // 256) * 256
    net.linear(f'{name}.attention.qkv', width, 3 * width, bias=False)
    net.linear(f'{name}.attention.out', width, width, bias=False)
    net.norm(f'{name}.attention.q_norm', HEAD, bias=False)
    net.norm(f'{name}.attention.k_norm', HEAD, bias=False)
    net.linear(f'{name}.feed_forward.w1', width, inner, bias=False)
    net.linear(f'{name}.feed_forward.w2', inner, width, bias=False)
    net.linear(f'{name}.feed_forward.w3', width, inner, bias=False)
    for part in ('attention_norm1', 'attention_norm2', 'ffn_norm1', 'ffn_norm2'):
        net.norm(f'{name}.{part}', width, bias=False)
    if modulated:
        net.linear(f'{name}.adaLN_modulation.0', MODULATION, 4 * width)


def build(net, width, layers, refiners, text_width):
    """width: a multiple of 128, at least 256."""
    if width % HEAD or width < MODULATION:
        raise ValueError('width must be a multiple of 128, at least 256')
    net.linear(f'{PREFIX}.x_embedder', 64, width)
    step = min(width, 1024)
    net.linear(f'{PREFIX}.t_embedder.mlp.0', 256, step)
    net.linear(f'{PREFIX}.t_embedder.mlp.2', step, MODULATION)
    net.norm(f'{PREFIX}.cap_embedder.0', text_width, bias=False)
    net.linear(f'{PREFIX}.cap_embedder.1', text_width, width)
    for i in range(refiners):
        _block(net, f'{PREFIX}.noise_refiner.{i}', width, True)
        _block(net, f'{PREFIX}.context_refiner.{i}', width, False)
    for i in range(layers):
        _block(net, f'{PREFIX}.layers.{i}', width, True)
    net.linear(f'{PREFIX}.final_layer.linear', width, 64)
    net.linear(f'{PREFIX}.final_layer.adaLN_modulation.1', MODULATION, width)
    net.tensor(f'{PREFIX}.cap_pad_token', (1, width), 1.0, f32=True)
    net.tensor(f'{PREFIX}.x_pad_token', (1, width), 1.0, f32=True)
