"""Names the pieces of prompts that repeat the beginning of earlier prompts.

Traces tell this in two ways: by hashes of blocks, or by the number of tokens that were there before. Both become
`Request.segments`: pieces with a name, such that two prompts share exactly the pieces that they begin with in common.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from sim.request import Segment

__all__ = ["Blocks", "aligned", "grown", "pieces_of_blocks"]

Pieces = tuple[Segment, ...]


class Blocks(NamedTuple):
    """A prompt as the hashes of its blocks, within a *scope* outside of which equal hashes mean nothing."""

    scope: Hashable
    hashes: Sequence[Hashable]
    block_tokens: int
    input_tokens: int


def pieces_of_blocks(prompts: Iterable[Blocks]) -> list[Pieces]:
    """Return the pieces of *prompts*: equal hashes from the first block on mean equal content.

    The last block of a prompt may be partial.
    """
    after: dict[tuple[Hashable, Hashable], int] = {}  # (node or scope, hash) -> node, a trie of all prompts
    first_prompt: list[int] = []  # node -> the prompt that first had it
    found: list[Pieces] = []
    for place, (scope, hashes, block_tokens, input_tokens) in enumerate(prompts):
        node: Hashable = ("scope", scope)
        shared, owner = 0, -1
        for block in hashes:
            known = after.get((node, block))
            if known is None:
                known = after[node, block] = len(first_prompt)
                first_prompt.append(place)
            elif first_prompt[known] != place:
                shared, owner = shared + block_tokens, first_prompt[known]
            node = known
        found.append(grown(found[owner] if shared else (), shared, f"prompt-{place}", input_tokens))
    return aligned(found)


def grown(earlier: Pieces, shared_tokens: int, name: str, input_tokens: int) -> Pieces:
    """Return a prompt that begins with *shared_tokens* of the pieces *earlier*; the rest is called *name*."""
    kept, left = [], min(shared_tokens, input_tokens)
    for piece, tokens in earlier:
        if left <= 0:
            break
        kept.append((piece, min(tokens, left)))
        left -= tokens
    own = input_tokens - sum(tokens for _, tokens in kept)
    return (*kept, (name, own)) if own else tuple(kept)


def aligned(prompts: Sequence[Pieces]) -> list[Pieces]:
    """Cut the pieces of all *prompts* wherever one of them ends, so that shared pieces are equal as a whole."""
    ends: defaultdict[str, set[int]] = defaultdict(set)
    for pieces in prompts:
        for name, tokens in pieces:
            ends[name].add(tokens)
    cuts = {name: _cut(name, sorted(at)) for name, at in ends.items()}
    return [tuple(part for name, tokens in pieces for end, part in cuts[name] if end <= tokens) for pieces in prompts]


def _cut(name: str, ends: list[int]) -> list[tuple[int, Segment]]:
    """Return each part of a piece with its end in the piece [tokens]; the first keeps the name."""
    starts = [0, *ends[:-1]]
    return [(end, (f"{name}+{start}" if start else name, end - start)) for start, end in zip(starts, ends, strict=True)]
