"""Seeded random models that stable-diffusion.cpp accepts.

layers.py draws tensors and holds the usual layers; one file per network names its tensors and shapes; files.py writes
safetensors and gguf. Nothing here is imported by the library.
"""
