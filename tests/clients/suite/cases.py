"""The cases: which model files, which options, and how near the two pictures have to be."""
from dataclasses import dataclass, field

# Nearness in dB of PSNR. Where two f16 programs round differently, 40; with quantised weights both round much more, 35.
F16_DB, QUANTISED_DB, UPSCALER_DB = 40.0, 35.0, 50.0

Z_IMAGE = ['--size', '384', '--steps', '2']
SD1 = ['--steps', '2', '--cfg', '5']


@dataclass
class Case:
    name: str
    about: str
    kind: str = 'generate'
    # option -> name of a file that models.py makes
    files: dict = field(default_factory=dict)
    options: list = field(default_factory=list)
    near_db: float = F16_DB
    # The same model as f32 weights, for a verdict where the two are not near enough: changes to `files`.
    reference: dict = field(default_factory=dict)
    least_speed: float = 1.0


CASES = [
    Case('upscale', 'real upscaler, RealESRGAN_x4plus_anime_6B', 'upscale', {'model': 'esrgan', 'in': 'picture'},
         near_db=UPSCALER_DB, least_speed=2.0),
    Case('zimage-f16', 'Z-Image, f16 weights', files={'model': 'zimage', 'taesd': 'taesd16'}, options=Z_IMAGE),
    Case('zimage-q8_0', 'Z-Image, q8_0 gguf', files={'model': 'zimage-q8_0', 'taesd': 'taesd16'}, options=Z_IMAGE,
         near_db=QUANTISED_DB),
    Case('zimage-q4_0', 'Z-Image, f16 file loaded as q4_0', files={'model': 'zimage', 'taesd': 'taesd16'},
         options=[*Z_IMAGE, '--type', 'q4_0'], near_db=QUANTISED_DB, reference={'model': 'zimage-as-q4_0'}),
    Case('sd1-taesd', 'SD1: conv UNet, CLIP, tiny autoencoder', files={'model': 'sd1', 'taesd': 'taesd4'},
         options=['--size', '256', *SD1]),
    Case('sd1-vae', 'SD1 with the full autoencoder', files={'model': 'sd1'}, options=['--size', '192', '--steps', '1']),
    Case('sd1-fa', 'SD1 with flash attention', files={'model': 'sd1', 'taesd': 'taesd4'},
         options=['--size', '256', *SD1, '--flash']),
    Case('lora', 'SD1 with a LoRA', files={'model': 'sd1', 'taesd': 'taesd4', 'lora': 'lora'},
         options=['--size', '192', '--steps', '1']),
    Case('img2img', 'SD1 from a picture, full autoencoder both ways', files={'model': 'sd1', 'init': 'picture'},
         options=['--steps', '3', '--strength', '0.7']),
    Case('convert', 'conversion to gguf, every quantised type', 'convert'),
]
QUICK = ['upscale', 'sd1-vae']
