"""Work that takes time or a GPU: runs, their queue and their records."""

from profiling.celery import app

__all__ = ["app"]
