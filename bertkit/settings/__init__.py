"""YAML and flags -> one checked object per command -> the resolved file that makes the run again.

``commands`` composes the leaf models of the other rooms, ``resolve`` lays the layers over one another, ``compare`` says what
differs between two starts of one run. Nothing is imported here: ``bertkit recipes`` needs no model.
"""
