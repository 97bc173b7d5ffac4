"""Makes the files that cases name, once, in the cache folder."""
import os
import subprocess
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..'))
TOOLS = os.path.join(ROOT, 'tools', 'models')

# Changed whenever a recipe changes, so that no stale file is used.
RECIPES = '1'
Z_IMAGE = ['--width', '1024', '--layers', '4', '--refiners', '1', '--text-width', '256']

RANDOM = {
    'zimage': ('zimage.safetensors', ['zimage', *Z_IMAGE]),
    'zimage-q8_0': ('zimage-q8_0.gguf', ['zimage', *Z_IMAGE, '--q8_0']),
    'zimage-small': ('zimage-small.safetensors', ['zimage', '--width', '256', '--text-width', '64']),
    'sd1': ('sd1.safetensors', ['sd1', '--base', '128', '--vae', '--vae-base', '32']),
    'taesd4': ('taesd4.safetensors', ['taesd', '--latent', '4']),
    'taesd16': ('taesd16.safetensors', ['taesd', '--latent', '16']),
    'lora': ('lora.safetensors', ['lora', '--base', '128', '--rank', '16']),
}


class Models:
    def __init__(self, cache, own_driver):
        self.cache = cache
        self.random = os.path.join(cache, f'models/random-{RECIPES}')
        self.own_driver = own_driver
        os.makedirs(self.random, exist_ok=True)

    def path(self, name):
        if name == 'esrgan':
            out = os.path.join(self.cache, 'models', 'RealESRGAN_x4plus_anime_6B.safetensors')
            command = [os.path.join(TOOLS, 'fetch-upscaler'), out]
        elif name == 'picture':
            out = os.path.join(self.random, 'picture.ppm')
            command = [sys.executable, os.path.join(ROOT, 'examples', 'upscale', 'draw_picture.py'), out]
        elif name == 'zimage-as-q4_0':
            # What loading as q4_0 makes of the file, written down by the client on its own ggml.
            out = os.path.join(self.random, 'zimage-as-q4_0.gguf')
            command = [self.own_driver, 'convert', '--model', self.path('zimage'), '--type', 'q4_0', '--out', out]
        else:
            file, args = RANDOM[name]
            out = os.path.join(self.random, file)
            command = [sys.executable, os.path.join(TOOLS, 'random_model.py'), args[0], out, *args[1:]]
        if not os.path.exists(out):
            print(f'   making {os.path.basename(out)}', flush=True)
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f'{" ".join(command)} failed:\n{done.stdout}{done.stderr}')
        return out
