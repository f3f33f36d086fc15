"""Receipts of searches."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from ._answers import Receipt, ShardReceipt
from ._errors import FacetError

_TAGS = "tags"  # the reason for which a search with tags leaves events out


class ReceiptError(FacetError):
    """The receipt of a search doesn't show that the search was complete, or is older than one that the
    client has seen. Tell the operators: a shard lost events, a replica is behind, or the cluster was
    restored from a backup. For the last, make a new Client."""


@dataclass(frozen=True)
class Heights:
    """The latest epoch and its list, and the index of each shard, that receipts of one gallery have shown."""

    epoch: int = 0
    shards: list[int] = field(default_factory=list)
    indexes: dict[int, int] = field(default_factory=dict)


class Receipts:
    """Checks the receipts of one client, and remembers what they have shown."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen = Heights()

    def now(self) -> Heights:
        """Returns what was seen so far. It does not change later."""
        with self._lock:
            return self._seen

    def check(self, got: Receipt | None, tagged: bool, before: Heights) -> None:
        """Raises ReceiptError unless the receipt shows a complete search, which had tags or not. before is
        what was seen when the search began: searches that run at once may end in any order."""
        if got is None:
            raise ReceiptError("the search has no receipt")
        if len(set(got.list)) < len(got.list):
            raise ReceiptError(f"a shard is twice in the list {got.list}")
        if not got.list or sorted(s.shard for s in got.shards) != sorted(got.list):
            raise ReceiptError(f"the list has the shards {got.list}, and {[s.shard for s in got.shards]} were searched")
        for s in got.shards:
            _check(s, tagged)
            if s.index < before.indexes.get(s.shard, 0):
                raise ReceiptError(f"a shard was searched at an earlier index than {before.indexes[s.shard]}: {s}")
        if got.epoch < before.epoch or (got.epoch == before.epoch and got.list != before.shards):
            raise ReceiptError(f"epoch {got.epoch} of {got.list}, and earlier {before.epoch} of {before.shards}")
        with self._lock:
            seen, indexes = self._seen, dict(self._seen.indexes)
            for s in got.shards:
                indexes[s.shard] = max(indexes.get(s.shard, 0), s.index)
            newer = got.epoch > seen.epoch
            self._seen = Heights(max(got.epoch, seen.epoch), got.list if newer else seen.shards, indexes)


def _check(s: ShardReceipt, tagged: bool) -> None:
    """Raises ReceiptError unless the numbers of the statement agree. Only a search with tags leaves events out."""
    if any(reason != _TAGS for reason in s.left_out):
        raise ReceiptError(f"a shard left out events for an unknown reason, which a newer client may know: {s}")
    tags = s.left_out.get(_TAGS, 0)
    if min(s.index, s.active, s.searched, tags) < 0:
        raise ReceiptError(f"a number of a shard is negative: {s}")
    if tags and not tagged:
        raise ReceiptError(f"a shard left out events by tag in a search without tags: {s}")
    if s.searched + tags != s.active:
        raise ReceiptError(f"not all of the {s.active} events of a shard were searched or left out: {s}")
