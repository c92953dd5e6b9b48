"""Import of Hugging Face checkpoints: a config.json becomes a `Model`."""

from sim.profiles.huggingface.reader import read

__all__ = ["read"]
