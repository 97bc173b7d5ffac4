"""Text encoders: CLIP ViT-L/14 and a small language model of the Qwen3 kind."""
CLIP_PREFIX = 'cond_stage_model.transformer.text_model'
LLM_PREFIX = 'text_encoders.llm.model'


def clip_l(net):
    """Every size is the real one: the client has no other."""
    width = 768
    net.tensor(f'{CLIP_PREFIX}.embeddings.token_embedding.weight', (49408, width), 0.05)
    net.tensor(f'{CLIP_PREFIX}.embeddings.position_embedding.weight', (77, width), 0.02)
    for i in range(12):
        layer = f'{CLIP_PREFIX}.encoder.layers.{i}'
        for part in ('q_proj', 'k_proj', 'v_proj'):
            net.linear(f'{layer}.self_attn.{part}', width, width)
        net.linear(f'{layer}.self_attn.out_proj', width, width, gain=0.5)
        net.norm(f'{layer}.layer_norm1', width)
        net.norm(f'{layer}.layer_norm2', width)
        net.linear(f'{layer}.mlp.fc1', width, 4 * width)
        net.linear(f'{layer}.mlp.fc2', 4 * width, width, gain=0.5)
    net.norm(f'{CLIP_PREFIX}.final_layer_norm', width)


def llm(net, width, layers):
    """32 heads of 128 on 8 key-value heads, as the client assumes for any number of layers but 28."""
    head, heads, kv_heads, vocabulary = 128, 32, 8, 151936
    net.tensor(f'{LLM_PREFIX}.embed_tokens.weight', (vocabulary, width), 0.05)
    for i in range(layers):
        layer = f'{LLM_PREFIX}.layers.{i}'
        net.linear(f'{layer}.self_attn.q_proj', width, heads * head, bias=False)
        net.linear(f'{layer}.self_attn.k_proj', width, kv_heads * head, bias=False)
        net.linear(f'{layer}.self_attn.v_proj', width, kv_heads * head, bias=False)
        net.linear(f'{layer}.self_attn.o_proj', heads * head, width, bias=False)
        net.norm(f'{layer}.self_attn.q_norm', head, bias=False)
        net.norm(f'{layer}.self_attn.k_norm', head, bias=False)
        net.linear(f'{layer}.mlp.gate_proj', width, 4 * width, bias=False)
        net.linear(f'{layer}.mlp.up_proj', width, 4 * width, bias=False)
        net.linear(f'{layer}.mlp.down_proj', 4 * width, width, bias=False)
        net.norm(f'{layer}.input_layernorm', width, bias=False)
        net.norm(f'{layer}.post_attention_layernorm', width, bias=False)
    net.norm(f'{LLM_PREFIX}.norm', width, bias=False)
