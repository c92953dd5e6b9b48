"""What an autoscaler remembers of one pool."""

from __future__ import annotations

import math
from collections import deque

from sim.autoscaler.base import Autoscaler, Snapshot

__all__ = ["Controller"]


class Controller:
    """Lets *policy* decide, and keeps its wishes within its bounds, windows and steps.

    As `stabilizeRecommendationWithBehaviors` of Kubernetes (`pkg/controller/podautoscaler/horizontal.go`): up to the
    lowest wish of the window for up, down to the highest of the window for down, else as it is.
    """

    def __init__(self, policy: Autoscaler) -> None:
        self.policy = policy
        self._seen: list[Snapshot] = [Snapshot(ready=0)]
        self._lowest = _Extreme(policy.stabilization_up_s, -1)
        self._highest = _Extreme(policy.stabilization_down_s, 1)
        self._stepped_up_s = self._stepped_s = -math.inf
        self._active_s = 0.0
        self._wished = False

    def decide(self, now_s: float, current: int, snapshot: Snapshot) -> int:
        """Return how many replicas there should be from *now_s* on, *current* starting or ready ones included.

        *snapshot* is the newest that is known.
        """
        if snapshot.active or snapshot.arrivals > self._seen[-1].arrivals:
            self._active_s = now_s
        self._seen.append(snapshot)
        if not current:
            return self.policy.min_replicas if snapshot.waiting else 0
        if self.policy.scale_to_zero and now_s - self._active_s >= self.policy.idle_s:
            return 0
        return self._stepped(now_s, current, self._stabilized(now_s, current))

    def _stabilized(self, now_s: float, current: int) -> int:
        policy = self.policy
        wish = min(max(policy.wanted(self._seen, current), policy.min_replicas), policy.max_replicas)
        if not self._wished:  # as `maybeInitScaleDownStabilizationWindow`: what there is stays for a window
            self._wished = True
            self._lowest.of(0.0, current)
            self._highest.of(0.0, current)
        return min(max(current, self._lowest.of(now_s, wish)), self._highest.of(now_s, wish))

    def _stepped(self, now_s: float, current: int, wish: int) -> int:
        """Return what of *wish* is done now."""
        policy = self.policy
        if wish > current and now_s - self._stepped_up_s >= policy.cooldown_up_s:
            self._stepped_up_s = self._stepped_s = now_s
            return min(wish, current + (policy.step_up or max(current, 4)))
        if wish < current and now_s - self._stepped_s >= policy.cooldown_down_s:
            self._stepped_s = now_s
            return max(wish, current - (policy.step_down or current))
        return current


class _Extreme:
    """The highest wish (*sign* 1) of the last *window_s*, or the lowest (-1), in constant time a wish on average."""

    def __init__(self, window_s: float, sign: int) -> None:
        self._window_s, self._sign = window_s, sign
        self._kept: deque[tuple[float, int]] = deque()  # those that no later one outdoes

    def of(self, now_s: float, wish: int) -> int:
        """Add a *wish* and return the extreme one."""
        while self._kept and self._sign * self._kept[-1][1] <= self._sign * wish:
            self._kept.pop()
        self._kept.append((now_s, wish))
        while self._kept[0][0] < now_s - self._window_s:
            self._kept.popleft()
        return self._kept[0][1]
