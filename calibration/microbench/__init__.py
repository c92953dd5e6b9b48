"""Times the kernels of language models on one's own accelerators; needs PyTorch, which nothing else here does."""
