"""Runs the cases of a client on two builds of it and compares them.

cases.py says what is run; models.py makes the files; measure.py starts the driver; pictures.py and conversions.py compare
results; judge.py decides; __main__.py is the command.
"""
