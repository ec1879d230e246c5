"""bertkit: from a text file to a BERT, and from a BERT to a scored task."""

__version__ = "0.1.0"
