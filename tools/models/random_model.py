"""Writes a small, complete model with seeded random weights that stable-diffusion.cpp loads."""
import argparse
import os
import sys

from randmodel import autoencoder, files, text, unet, zimage
from randmodel.layers import Net

KINDS = """kinds:
  sd1       Stable Diffusion 1: UNet of --base channels, CLIP ViT-L/14; with --vae also the full autoencoder
  zimage    Z-Image: transformer of --width, --layers and --refiners, a language model of --text-width and --text-layers
  taesd     tiny autoencoder for --latent channels (4: sd1, 16: zimage)
  lora      low-rank changes of --rank for an sd1 of the same --base
OUT ends in .safetensors or .gguf; --q8_0 encodes the matrices of a gguf file.
The same arguments give the same bytes on any machine."""


def build(args):
    net = Net(args.seed)
    if args.kind == 'sd1':
        unet.build(net, args.base)
        text.clip_l(net)
        if args.vae:
            autoencoder.full(net, args.vae_base)
    elif args.kind == 'zimage':
        zimage.build(net, args.width, args.layers, args.refiners, args.text_width)
        text.llm(net, args.text_width, args.text_layers)
    elif args.kind == 'taesd':
        autoencoder.tiny(net, args.latent)
    else:
        whole = Net(args.seed)
        unet.build(whole, args.base)
        unet.lora(net, {name: spec[0] for name, spec in whole.specs.items()}, args.rank)
    return net


def main():
    p = argparse.ArgumentParser(prog='random-model', description=__doc__, epilog=KINDS,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('kind', choices=['sd1', 'zimage', 'taesd', 'lora'])
    p.add_argument('out')
    p.add_argument('--seed', type=int, default=42)
    p.add_argument('--base', type=int, default=32)
    p.add_argument('--vae', action='store_true')
    p.add_argument('--vae-base', type=int, default=32, help="channels of the decoder's finest level")
    p.add_argument('--width', type=int, default=256)
    p.add_argument('--layers', type=int, default=1)
    p.add_argument('--refiners', type=int, default=1)
    p.add_argument('--text-width', type=int, default=64)
    p.add_argument('--text-layers', type=int, default=2)
    p.add_argument('--latent', type=int, default=4)
    p.add_argument('--rank', type=int, default=4)
    p.add_argument('--q8_0', action='store_true')
    args = p.parse_args()
    gguf = args.out.endswith('.gguf')
    if not gguf and not args.out.endswith('.safetensors'):
        p.error('OUT must end in .safetensors or .gguf')
    if args.q8_0 and not gguf:
        p.error('--q8_0 needs a .gguf file')
    net = build(args)
    part = args.out + '.part'
    if gguf:
        files.write_gguf(part, net.values(), 'sd', args.q8_0)
    else:
        files.write_safetensors(part, net.values())
    os.replace(part, args.out)
    print(f'{args.out}: {len(net.specs)} tensors, {os.path.getsize(args.out) / 1e6:.1f} MB', file=sys.stderr)


if __name__ == '__main__':
    main()
