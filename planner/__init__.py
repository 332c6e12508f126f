"""vLLM Planner: how a vLLM deployment will use its GPUs, before it is bought or booted."""
