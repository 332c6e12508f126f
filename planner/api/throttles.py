"""How often: a counter for each person, scope and window of time."""

from rest_framework.throttling import ScopedRateThrottle


class ScopedCountThrottle(ScopedRateThrottle):
    """DRF's scopes and rates, counted, not listed: at 12,000 requests a minute its list of times weighs 100 kB."""

    def allow_request(self, request, view) -> bool:
        self.scope = getattr(view, self.scope_attr, None)
        if not self.scope:
            return True
        self.num_requests, self.duration = self.parse_rate(self.get_rate())
        self.now = self.timer()
        window = f"{self.get_cache_key(request, view)}_{int(self.now // self.duration)}"
        self.cache.add(window, 0, self.duration)
        return self.cache.incr(window) <= self.num_requests

    def wait(self) -> float:
        """Return the seconds until the next window opens."""
        return self.duration - self.now % self.duration
