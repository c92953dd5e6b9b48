"""A naive serving engine, written from the rules of the iteration alone: the judge of the program's scheduling.

One iteration at a time, one object a block, one name a token; slow, and meant to be obviously right. It
shares no code with the program. Its only source is "The iteration, exactly" in ``docs/design.md``. Where that
text can be read in more than one way, this is the reading taken here:

* An arrival at the very instant of a boundary is seen at that boundary.
* Every duplicate stays unkeyed, not only one that is computed in the same iteration; of those of one
  iteration the first in admission order gets the key. A duplicate does not inherit the key when the keyed
  block is evicted.
* A prompt block with tokens of no segment is keyed, too, by content that is the request's own: only this
  request can hit it, after a preemption.
* The cap of floor((input - 1)/block_size) hits holds after a preemption, too, and with `cache_generated`.
* With `cache_generated` the full blocks of an answer are keyed as those of a prompt are: at the end of the
  iteration that fills them, also while the request still runs.
* `continuous` counts the tokens that it computes against the budget, not the cached ones. Its decode
  iterations have no budget.
* `static` counts everybody's full length when it cuts the batch, shared blocks as often as they are shared,
  but takes blocks only as tokens are computed. Of a batch one request after the other is looked up and then
  takes its blocks.
* With drafts, a decode computes the draft and one token more if the budget holds all of them, else nothing. It
  keeps the blocks that it has taken when tokens are rejected. How many tokens a verification emits is given.
* `static` waits from the arrival of the first of those who wait now. A request that will be refused is "to
  come" until it arrives, and waits for nobody after that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Rules:
    """The engine: scheduler, pool and the four constants of the affine cost [s]."""

    kind: str  # chunked_prefill, continuous or static
    num_blocks: int
    block_size: int
    max_num_batched_tokens: int = 0
    max_num_seqs: int = 0
    batch_size: int = 0
    max_wait_s: float = math.inf
    prefix_caching: bool = False
    cache_generated: bool = False
    base_s: float = 1.0
    per_token_s: float = 0.0
    per_context_token_s: float = 0.0
    per_seq_s: float = 0.0
    draft_tokens: int = 0
    tiers: tuple[tuple[int, float], ...] = ()  # blocks of room, and seconds to load one
    write_through: bool = False
    preemption_mode: str = "recompute"
    swap: tuple[int, float] = (0, 0.0)  # blocks of room, and seconds to move one


@dataclass(eq=False)
class Block:
    users: int = 0
    key: tuple | None = None
    away: bool = False  # in a tier, not in the pool


@dataclass(eq=False)
class Job:
    """One request and what became of it."""

    index: int
    arrival_s: float
    input_tokens: int
    output_tokens: int
    segments: tuple[tuple[str, int], ...] = ()
    output_segment: str | None = None
    accepted: tuple[int, ...] = ()  # draft tokens, one number a verification

    status: str = "waiting"
    admitted_s: float = math.nan
    first_token_s: float = math.nan
    last_token_s: float = math.nan
    preemptions: int = 0
    cached_tokens: int = 0
    computed: int = 0
    emitted: int = 0
    verified: int = 0
    swapped: int = 0
    decoding: bool = False
    blocks: list[Block] = field(default_factory=list)

    @property
    def content(self) -> list[tuple]:
        """What each token is, prompt and answer: (segment, offset in it), or the request's own."""
        named = [(name, offset) for name, length in self.segments for offset in range(length)]
        own = [("own", self.index, place) for place in range(len(named), self.input_tokens)]
        answer = self.output_segment or ("answer", self.index)
        return named + own + [(answer, offset) for offset in range(self.output_tokens)]

    @property
    def ahead(self) -> int:
        """Tokens to compute before the next emission; 1 for a decode."""
        return self.input_tokens + self.emitted - self.computed

    @property
    def finished(self) -> bool:
        return self.emitted == self.output_tokens


class Pool:
    """Blocks: in use, free without a key, or free with a key, least recently freed first."""

    def __init__(self, rules: Rules) -> None:
        self.rules, self.size = rules, rules.block_size
        self.blank = [Block() for _ in range(rules.num_blocks)]
        self.idle: list[Block] = []
        self.by_key: dict[tuple, Block] = {}
        self.tiers: list[list[tuple]] = [[] for _ in rules.tiers]  # keys, those that were used last at the end
        self.load_s = 0.0

    def keep(self, key: tuple) -> None:
        """Keep a copy in the first tier, unless no other could use it; what is too much for one goes to the next."""
        if any(token[0] == "own" or isinstance(token[0], tuple) for token in key):
            return
        for tier in self.tiers:
            if key in tier:
                tier.remove(key)
        for tier, (room, _) in zip(self.tiers, self.rules.tiers, strict=True):
            tier.append(key)
            if len(tier) <= room:
                return
            key = tier.pop(0)

    def load(self, key: tuple) -> None:
        for tier, (_, seconds) in zip(self.tiers, self.rules.tiers, strict=True):
            if key in tier:
                tier.append(tier.pop(tier.index(key)))
                self.load_s += seconds
                return

    def hits(self, job: Job) -> list[Block]:
        found: list[Block] = []
        if self.rules.prefix_caching:
            content = job.content
            for number in range(1, (job.input_tokens - 1) // self.size + 1):
                key = tuple(content[: number * self.size])
                block = self.by_key.get(key)
                if block is None and any(key in tier for tier in self.tiers):
                    block = Block(key=key, away=True)
                if block is None:
                    break
                found.append(block)
        return found

    def missing(self, job: Job, tokens: int) -> int:
        """Blocks that *job* lacks to hold *tokens* tokens."""
        return max(math.ceil(tokens / self.size) - len(job.blocks), 0)

    def can_take(self, count: int, but: list[Block] = ()) -> bool:
        """Whether *count* blocks are free, those of *but* spared."""
        return count <= len(self.blank) + len([block for block in self.idle if block not in but])

    def touch(self, job: Job, hits: list[Block]) -> None:
        for block in hits:
            if block.away:
                self.load(block.key)
                continue
            if block.users == 0:
                self.idle.remove(block)
            block.users += 1
        job.blocks = list(hits)

    def take(self, job: Job, count: int) -> None:
        for _ in range(count):
            if self.blank:
                block = self.blank.pop()
            else:
                block = self.idle.pop(0)
                del self.by_key[block.key]
                if not self.rules.write_through:
                    self.keep(block.key)
                block.key = None
            block.users = 1
            away = next((place for place, held in enumerate(job.blocks) if held.away), None)
            if away is None:
                job.blocks.append(block)
            else:
                block.key = job.blocks[away].key
                self.by_key[block.key] = block
                job.blocks[away] = block

    def key(self, job: Job, before: int) -> None:
        """Key the blocks that were filled since *job* had *before* tokens computed."""
        if self.rules.prefix_caching:
            content = job.content
            end = job.computed if self.rules.cache_generated else min(job.computed, job.input_tokens)
            for number in range(before // self.size, end // self.size):
                key = tuple(content[: (number + 1) * self.size])
                if key not in self.by_key and job.blocks[number].key is None:
                    self.by_key[key] = job.blocks[number]
                    job.blocks[number].key = key
                    if self.rules.write_through:
                        self.keep(key)

    def release(self, job: Job) -> None:
        for block in reversed(job.blocks):
            block.users -= 1
            if block.users == 0:
                (self.blank if block.key is None else self.idle).append(block)
        job.blocks = []


@dataclass(frozen=True)
class Table:
    """Blocks of *size* tokens, for layers that look back on *window* tokens, in fixed *chunked* pieces or not."""

    size: int
    window: float = math.inf
    chunked: bool = False


class Tables:
    """The pool without a prefix cache, for several block tables a sequence: each block by its number, one by one.

    A table holds the blocks of which some token can still be looked back on by the next one to compute. The rest is
    freed when the tokens are computed. A state takes a block as long as the sequence runs.
    """

    def __init__(self, rules: Rules, tables: list[Table], states: int) -> None:
        self.size, self.free, self.tables, self.states = rules.block_size, rules.num_blocks, tables, states
        self.held: dict[Job, list[set[int]]] = {}
        self.next: dict[Job, list[int]] = {}
        self.wanted: dict[Job, int] = {}
        self.load_s = 0.0

    def hits(self, job: Job) -> list[Block]:
        return []

    def touch(self, job: Job, hits: list[Block]) -> None:
        self.held[job] = [set() for _ in self.tables] + [{-1 - state for state in range(self.states)}]
        self.next[job] = [0 for _ in self.tables]
        self.free -= self.states

    def missing(self, job: Job, tokens: int) -> int:
        self.wanted[job] = tokens
        after = self.next.get(job, [0 for _ in self.tables])
        pairs = zip(self.tables, after, strict=True)
        new = [len(range(number, math.ceil(tokens / table.size))) for table, number in pairs]
        return sum(new) + (0 if job in self.held else self.states)

    def can_take(self, count: int, but: list[Block] = ()) -> bool:
        return count <= self.free

    def take(self, job: Job, count: int) -> None:
        for place, table in enumerate(self.tables):
            for number in range(self.next[job][place], math.ceil(self.wanted[job] / table.size)):
                self.held[job][place].add(number)
                self.next[job][place] = number + 1
                self.free -= 1

    def key(self, job: Job, before: int) -> None:
        for place, table in enumerate(self.tables):
            for number in sorted(self.held[job][place]):
                tokens = range(number * table.size, (number + 1) * table.size)
                if not any(self.looks_back(table, job.computed, token) for token in tokens):
                    self.held[job][place].remove(number)
                    self.free += 1

    @staticmethod
    def looks_back(table: Table, position: int, token: int) -> bool:
        """Whether the token at *position*, or a later one, can look back on *token*."""
        if table.chunked:
            return token // table.window >= position // table.window
        return token > position - table.window

    def release(self, job: Job) -> None:
        self.free += sum(map(len, self.held.pop(job)))
        del self.next[job]


class Engine:
    def __init__(self, rules: Rules, pool: Pool | Tables | None = None) -> None:
        self.rules, self.pool = rules, pool or Pool(rules)
        self.swap_free = rules.swap[0]
        self.waiting: list[Job] = []
        self.running: list[Job] = []  # in admission order

    def arrive(self, job: Job) -> None:
        if self.most_blocks(job) > self.rules.num_blocks:
            job.status = "rejected"
        else:
            self.waiting.append(job)

    def longest(self, job: Job) -> int:
        return job.input_tokens + job.output_tokens + self.rules.draft_tokens

    def most_blocks(self, job: Job) -> int:
        """What *job* may come to hold; with windows by vLLM's rule, from what an iteration can compute of a prompt."""
        tokens, blocks = self.longest(job), 0
        if isinstance(self.pool, Pool):
            return math.ceil(tokens / self.rules.block_size)
        chunk = self.rules.max_num_batched_tokens if self.rules.kind == "chunked_prefill" else math.inf
        for table in self.pool.tables:
            reach = table.window - 1 + chunk
            blocks += math.ceil(tokens / table.size) if reach >= tokens else math.ceil(reach / table.size) + 1
        return blocks + self.pool.states

    def schedule(self, now: float, more_to_come: bool) -> list[tuple[Job, int]]:
        """Return who computes how many tokens in the iteration that starts now; nothing if it does not start."""
        if self.rules.kind == "static":
            return self._static(now, more_to_come)
        return self._chunked(now) if self.rules.kind == "chunked_prefill" else self._continuous(now)

    def _chunked(self, now: float) -> list[tuple[Job, int]]:
        budget = self.rules.max_num_batched_tokens
        work, preempted = self._running_first(budget)
        budget -= sum(tokens for _, tokens in work)
        while self.waiting and budget and not preempted and len(self.running) < self.rules.max_num_seqs:
            job, hits = self.waiting[0], self.pool.hits(self.waiting[0])
            tokens = min(job.ahead - len(hits) * self.pool.size, budget)
            if not self._admit(job, hits, tokens, now):
                break
            work.append((job, tokens))
            budget -= tokens
        return work

    def _swapped_in(self) -> list[tuple[Job, int]]:
        """Let everybody decode, and those at the head of the queue who come back from the host."""
        work, preempted = self._running_first(math.inf)
        each = 1 + self.rules.draft_tokens
        while not preempted and self.waiting and self.waiting[0].swapped:
            job = self.waiting[0]
            count = math.ceil((job.computed + each) / self.pool.size)
            if len(self.running) == self.rules.max_num_seqs or not self.pool.can_take(count):
                break
            self.pool.take(job, count)
            self.pool.key(job, 0)
            self.swap_free += job.swapped
            self.pool.load_s += job.swapped * self.rules.swap[1]
            job.swapped, job.decoding = 0, True
            self.running.append(self.waiting.pop(0))
            work.append((job, each))
        return work

    def _continuous(self, now: float) -> list[tuple[Job, int]]:
        if self.waiting and self.waiting[0].swapped:
            return self._swapped_in()
        work: list[tuple[Job, int]] = []
        used, limit = 0, self.rules.max_num_batched_tokens
        while self.waiting and len(self.running) < self.rules.max_num_seqs and not self.waiting[0].swapped:
            job, hits = self.waiting[0], self.pool.hits(self.waiting[0])
            tokens = job.ahead - len(hits) * self.pool.size
            if (work and used + tokens > limit) or not self._admit(job, hits, tokens, now):
                break
            work.append((job, tokens))
            used += tokens
        return work or self._running_first(math.inf)[0]

    def _static(self, now: float, more_to_come: bool) -> list[tuple[Job, int]]:
        if self.running:
            each = 1 + self.rules.draft_tokens
            work = [(job, each) for job in self.running if not job.finished]
            for job, _ in work:
                self.pool.take(job, self.pool.missing(job, job.computed + each))
            return work
        full = len(self.waiting) >= self.rules.batch_size
        if not self.waiting or not (full or now >= self.deadline_s or not more_to_come):
            return []
        work, reserved = [], 0
        while self.waiting and len(work) < self.rules.batch_size:
            job = self.waiting[0]
            reserved += self.most_blocks(job)
            if reserved > self.rules.num_blocks:
                break
            hits = self.pool.hits(job)
            tokens = job.ahead - len(hits) * self.pool.size
            assert self._admit(job, hits, tokens, now)
            work.append((job, tokens))
        return work

    @property
    def deadline_s(self) -> float:
        """When a static batch starts at the latest."""
        return self.waiting[0].arrival_s + self.rules.max_wait_s if self.waiting else math.inf

    def _running_first(self, budget: float) -> tuple[list[tuple[Job, int]], bool]:
        work: list[tuple[Job, int]] = []
        preempted = False
        for job in list(self.running):
            if budget == 0:
                break
            if job not in self.running:
                continue
            tokens = 1 + self.rules.draft_tokens if job.decoding else min(job.ahead, budget)
            if tokens > budget:
                continue
            missing = self.pool.missing(job, job.computed + tokens)
            while job in self.running and not self.pool.can_take(missing):
                self._preempt(self.running.pop())
                preempted = True
            if job in self.running:
                self.pool.take(job, missing)
                work.append((job, int(tokens)))
                budget -= tokens
        return work, preempted

    def _preempt(self, job: Job) -> None:
        held = len(job.blocks)
        if self.rules.preemption_mode == "swap" and held <= self.swap_free:
            job.swapped = held
            self.swap_free -= held
            self.pool.load_s += held * self.rules.swap[1]
        else:
            job.computed = 0
        job.decoding = False
        self.pool.release(job)
        job.preemptions += 1
        self.waiting.insert(0, job)

    def _admit(self, job: Job, hits: list[Block], tokens: int, now: float) -> bool:
        past = len(hits) * self.pool.size
        count = self.pool.missing(job, past + tokens) - len([hit for hit in hits if not hit.away])
        if not self.pool.can_take(count, but=hits):
            return False
        self.pool.touch(job, hits)
        self.pool.take(job, count)
        job.computed = past
        job.cached_tokens += past
        if math.isnan(job.admitted_s):
            job.admitted_s = now
        self.running.append(self.waiting.pop(0))
        return True

    def compute(self, work: list[tuple[Job, int]], now: float) -> float:
        """Run one iteration and return when it ends."""
        rules = self.rules
        padding = len([job for job in self.running if job.finished])  # only `static` keeps finished ones
        now += self.pool.load_s
        self.pool.load_s = 0.0
        now += (
            rules.base_s
            + rules.per_token_s * sum(tokens for _, tokens in work)
            + rules.per_context_token_s * sum(job.computed + tokens for job, tokens in work)
            + rules.per_seq_s * (len(work) + padding)
        )
        for job, tokens in work:
            before, emits = job.computed, 1
            if job.decoding and rules.draft_tokens:
                emits = min(1 + job.accepted[job.verified], job.output_tokens - job.emitted)
                job.verified += 1
            job.computed += emits if job.decoding else tokens
            self.pool.key(job, before)
            if job.decoding or job.ahead == 0:
                job.emitted += emits
                job.decoding = True
                job.last_token_s = now
                if job.emitted == 1:
                    job.first_token_s = now
                if job.finished:
                    job.status = "completed"
        if rules.kind != "static" or all(job.finished for job in self.running):
            for job in [job for job in self.running if job.finished]:
                self.running.remove(job)
                self.pool.release(job)
        return now


def simulate(jobs: list[Job], rules: Rules, pool: Pool | Tables | None = None) -> Engine:
    """Play *jobs* to the end, each of which then says what became of it."""
    coming = sorted(jobs, key=lambda job: (job.arrival_s, job.index))
    engine, now = Engine(rules, pool), 0.0
    while coming or engine.waiting or engine.running:
        while coming and coming[0].arrival_s <= now:
            engine.arrive(coming.pop(0))
        work = engine.schedule(now, bool(coming))
        if work:
            now = engine.compute(work, now)
        elif coming or engine.waiting:
            now = min([job.arrival_s for job in coming[:1]] + [engine.deadline_s] * (rules.kind == "static"))
    return engine
