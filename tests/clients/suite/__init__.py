"""Runs the cases of a client on two builds of it and compares them.

models.py makes the files; measure.py starts the driver; conversions.py compares files. For stable-diffusion.cpp, cases.py says what is
run, pictures.py compares, judge.py decides, __main__.py is the command. For the others turns.py runs both sides in turn, and llama.py
and whisper.py are the commands, with their cases and what is compared.
"""
