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


# Models of others, which a script fetches: name -> (file, script, its argument: the file or the folder).
FETCHED = {
    'esrgan': ('RealESRGAN_x4plus_anime_6B.safetensors', 'fetch-upscaler', ''),
    'gemma': ('gemma-3-270m-q4_k_m.gguf', 'fetch-gemma', ''),
    'minilm-f16': ('minilm-l6-v2-f16.gguf', 'fetch-minilm', '..'),
    'minilm-q8_0': ('minilm-l6-v2-q8_0.gguf', 'fetch-minilm', '..'),
    'whisper': ('whisper-tiny.en-f16.bin', 'fetch-whisper', ''),
}

SPEECH = {
    'speech-short': 'The keeper of the lighthouse climbed the stairs, cleaned the lamp, and wrote down the weather of the night.',
    'speech-long': 'The lighthouse stood on a cliff above the sea, and in the evening its light could be seen from every farm on the '
                   'island. The keeper had lived there for thirty years. Every morning he climbed the stairs, cleaned the lamp, and '
                   'wrote down the weather, the wind, the height of the waves, and the ships that had passed in the night. One day '
                   'in autumn a boat came in that nobody knew. It carried no sail and no name, only a box of letters that were '
                   'addressed to him. He sat down by the window, opened the first of them, and began to read. It had been written '
                   'long before he was born, by a woman who had kept the same light, and it told him what would happen to the '
                   'island if the lamp should ever go out. He read until it was dark, and then he went up the stairs.',
}


class Models:
    def __init__(self, cache, own_driver):
        self.cache = cache
        self.random = os.path.join(cache, f'models/random-{RECIPES}')
        self.own_driver = own_driver
        os.makedirs(self.random, exist_ok=True)

    def path(self, name):
        show = False
        if name in FETCHED:
            file, script, where = FETCHED[name]
            out = os.path.join(self.cache, 'models', file)
            command = [os.path.join(TOOLS, script), os.path.normpath(os.path.join(out, where))]
            show = True
        elif name in SPEECH:
            out = os.path.join(self.cache, 'models', f'{name}-{RECIPES}.wav')
            command = [os.path.join(TOOLS, 'speak'), out, SPEECH[name]]
        elif name == 'picture':
            out = os.path.join(self.random, 'picture.ppm')
            command = [sys.executable, os.path.join(ROOT, 'examples', 'upscale', 'draw_picture.py'), out]
        elif name == 'gemma-wide':
            out = os.path.join(self.cache, 'models', 'gemma-3-270m-f16.gguf')
            command = [self.own_driver, 'widen', '--model', self.path('gemma'), '--out', out]
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
            # Downloads show how far they are.
            done = subprocess.run(command, capture_output=not show, text=True)
            if done.returncode != 0:
                sys.exit(f'{" ".join(command)} failed:\n{done.stdout or ""}{done.stderr or ""}')
        return out
