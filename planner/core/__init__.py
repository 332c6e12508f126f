"""The arithmetic of vLLM's memory and capacity: plain Python, no Django, files, network or clock."""

CORE_VERSION = "2"
