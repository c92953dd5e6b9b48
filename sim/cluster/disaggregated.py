"""Requests whose prompts are computed by one replica and whose answers are written by another."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sim.cluster.clock import ARRIVALS, Clock, Moment
from sim.cluster.link import Link
from sim.cluster.replica import Replica
from sim.metrics.transfers import TransferLog
from sim.request import Request, Status
from sim.router.disaggregation import Disaggregation, Role

__all__ = ["Disaggregated"]


@dataclass(slots=True, eq=False)
class _Job:
    """A request on its way.

    Attributes
    ----------
    prompt
        What the prefill replica is asked: the same, with an answer of one token.
    target
        The decode replica, if it is chosen; else -1.
    tokens
        How many tokens' KV is to be sent, as the decode replica said when it took blocks for them.
    prefilled_s
        When the prompt was computed [s]; `nan` until then.
    lent
        Whether the prefill replica holds the prompt's blocks, with nothing on its way to take them back.
    ended
        Whether the request was answered, refused or given up.
    """

    request: Request
    prompt: Request
    target: int
    tokens: int = 0
    prefilled_s: float = math.nan
    lent: bool = False
    ended: bool = False


class Disaggregated:
    """The prefill and decode replicas of one service, and the link between them.

    A prompt is a request of its own to a prefill replica, which holds its blocks until they are sent. The decode
    replica queues a request until it has blocks for the KV of the prompt; nothing is sent before.

    Parameters
    ----------
    options
        With nothing left open.
    replicas
        All of the cluster, by number.
    prefill_replicas
        How many of them are this service's.
    choose
        Returns the number of the replica of a role for a request.
    submit
        Hands a request to the replica of a number.
    on_done
        Called with every request that is answered, refused or given up.
    """

    def __init__(
        self,
        env: Clock,
        options: Disaggregation,
        link: Link,
        log: TransferLog,
        replicas: Sequence[Replica],
        *,
        prefill_replicas: int,
        choose: Callable[[Request, Role], int],
        submit: Callable[[Request, int], None],
        on_done: Callable[[Request], None],
    ) -> None:
        self._env, self._options, self._link, self._log = env, options, link, log
        self._replicas, self._prefill_replicas = replicas, prefill_replicas
        self._choose, self._submit, self._on_done = choose, submit, on_done
        self._decode_first = options.order == "decode_first"
        self._jobs: dict[Request, _Job] = {}  # by the request, and by its prompt
        self._prompts = 0  # with prefill replicas

    def serve(self, request: Request) -> None:
        """Take *request* from the router; first its images are encoded, if there are any."""
        if not self._options.encode_s:
            self._begin(request)
            return
        request.queued_s += self._options.encode_s
        Moment(self._env, request.queued_s, lambda _: self._begin(request), ARRIVALS)

    def _begin(self, request: Request) -> None:
        local, target = self._options.local_prefill, -1
        if local.asks:
            target = self._choose(request, "decode")
            if local.stays(request, self._prompts / self._prefill_replicas):
                self._submit(request, target)
                return
        if not self._remote_tokens(request):
            self._submit(request, self._choose(request, "decode") if target < 0 else target)
            return
        prompt = replace(request, output_tokens=1, output_segment=None, expected_hit_tokens=0)
        job = self._jobs[request] = _Job(request, prompt, target)
        if self._decode_first:
            self._ask_decode(job)
        else:
            self._ask_prefill(job)

    def _remote_tokens(self, request: Request) -> int:
        """Return how much of its prompt a decode replica is sent: all, or all but the token that it computes again."""
        return request.input_tokens - (self._options.first_token == "decode")

    def _ask_prefill(self, job: _Job) -> None:
        job.prompt.queued_s = max(job.prompt.queued_s, self._env.now)
        self._jobs[job.prompt] = job
        self._prompts += 1
        self._submit(job.prompt, self._choose(job.prompt, "prefill"))

    def _ask_decode(self, job: _Job) -> None:
        request = job.request
        target = self._choose(request, "decode") if job.target < 0 else job.target
        request.queued_s, request.remote_tokens = self._env.now, self._remote_tokens(request)
        request.expected_hit_tokens = request.input_tokens  # nothing of it is to be computed
        self._submit(request, target)

    def reserved(self, request: Request, tokens: int) -> None:
        """Go on with *request*, whose decode replica has blocks and wants the KV of *tokens* tokens."""
        job = self._jobs[request]
        job.tokens = tokens
        if self._decode_first:
            self._ask_prefill(job)
        else:
            self._move(job)

    def ended(self, request: Request) -> None:
        """Take note that a replica has answered, refused or given up *request*, which may be a prompt."""
        job = self._jobs.pop(request, None)
        if job is not None and request is job.prompt:
            self._prefilled(job)
            return
        if job is not None:
            job.ended = True
            self._take_back(job)
        self._on_done(request)

    def _prefilled(self, job: _Job) -> None:
        """Go on with a request whose prompt was computed, refused or given up."""
        request, prompt = job.request, job.prompt
        self._prompts -= 1
        request.admitted_s = prompt.admitted_s
        request.cached_tokens += prompt.cached_tokens
        request.preemptions += prompt.preemptions
        if prompt.status is not Status.COMPLETED:
            self._give_up(job)
            return
        job.prefilled_s, job.lent = self._env.now, True
        if job.ended or (self._decode_first and not self._replicas[request.replica].loads(request)):
            self._take_back(job)  # of no use any more
            return
        if self._options.first_token == "prefill":
            request.first_token_s = request.last_token_s = self._env.now
            request.emitted_tokens = 1
        if self._decode_first:
            self._move(job)
        elif request.emitted_tokens == request.output_tokens:
            self._answered(job)
        else:
            self._ask_decode(job)

    def _give_up(self, job: _Job) -> None:
        """End a request whose prompt was refused or given up."""
        request, prompt = job.request, job.prompt
        if job.ended:
            return
        if self._decode_first:
            self._replicas[request.replica].give_up(request, prompt.reason)
        else:
            self._end(job, prompt.status)

    def _answered(self, job: _Job) -> None:
        """End a request whose answer is the token that the prefill replica emitted."""
        self._take_back(job)
        self._end(job, Status.COMPLETED)

    def _end(self, job: _Job, status: Status) -> None:
        request = job.request
        del self._jobs[request]
        request.status, request.reason, request.replica = status, job.prompt.reason, job.prompt.replica
        self._on_done(request)

    def _move(self, job: _Job) -> None:
        prompt, job.lent = job.prompt, False
        overlaps = self._options.overlap and not prompt.preemptions  # one that was preempted began anew
        move = self._link.move(
            prompt.replica,
            job.request.replica,
            job.tokens,
            since_s=prompt.admitted_s if overlaps else self._env.now,
            ready_s=self._env.now,
        )
        self._log.add((job.request.index, prompt.replica, job.request.replica, job.prefilled_s, *move))
        Moment(self._env, move.arrive_s, lambda _: self._arrive(job), ARRIVALS)

    def _arrive(self, job: _Job) -> None:
        self._replicas[job.prompt.replica].take_back(job.prompt)
        self._replicas[job.request.replica].loaded(job.request)

    def _take_back(self, job: _Job) -> None:
        if job.lent:
            job.lent = False
            self._replicas[job.prompt.replica].take_back(job.prompt)
