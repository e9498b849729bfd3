"""What Poolkeeper and its emulator believe of Azure where no document decides, and what another answer changes.

A setting of one word is a switch of the emulator's seed: `settings: {switches: …}`.
"""

from __future__ import annotations

from dataclasses import dataclass

NONE = "none"
# How an experiment ends that could not be made. Only the emulator may refuse one as not emulated.
NOT_EMULATED = "not emulated"
NOT_SETTLED = "not settled"

ALWAYS_MOVES = "no switch: the emulator always moves the etag"
ONE_ANSWER = "no switch: the emulator has this answer alone"


@dataclass(frozen=True)
class Belief:
    question: str
    believed: str
    setting: str


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    fact: str
    believed: str
    seen: str
    setting: str

    @property
    def is_settled(self) -> bool:
        return not self.seen.startswith((NOT_SETTLED, NOT_EMULATED))


def finding(fact: str, seen: str) -> Finding:
    belief = BELIEFS[fact]
    # A refusal carries its code.
    same = seen.partition(" (")[0] == belief.believed or seen.startswith((NOT_SETTLED, NOT_EMULATED))
    return Finding(fact, belief.believed, seen, NONE if same else belief.setting)


BELIEFS = {
    # The etag: `moves` or `stays`.
    "etag.equalPut": Belief("a PUT of what is there", "stays", "etagMovesOnSameWrite"),
    "etag.sameNumber": Belief("a PATCH of the same capacity", "stays", "etagMovesOnSameWrite"),
    "etag.tags": Belief("a PATCH of tags", "moves", ALWAYS_MOVES),
    "etag.extension": Belief("a PUT of one extension", "moves", ALWAYS_MOVES),
    "etag.image": Belief("a PATCH of the image alone", "moves", ALWAYS_MOVES),
    "etag.raise.uniform": Belief("a raise", "moves", "etagStaysOnCapacity"),
    "etag.raise.flexible": Belief("a raise, Flexible", "moves", "etagStaysOnCapacity"),
    "etag.delete.uniform": Belief("a batch delete", "moves", "etagStaysOnDelete"),
    "etag.delete.flexible": Belief("a batch delete, Flexible", "moves", "etagStaysOnDelete"),
    # latestModelApplied of machines on the model: `stays` or `falls`.
    "latest.equalPut": Belief("a PUT of what is there", "stays", "sameModelFlipsFlag"),
    "latest.tags": Belief("a PATCH of tags", "stays", "tagsFlipFlag"),
    "latest.protection": Belief("a PUT of a machine's protection", "stays", "protectionWriteFlipsFlag"),
    "latest.equalDisk": Belief("a PATCH of the equal osDisk, ephemeral", "stays", "sameModelFlipsFlag"),
    # sku.capacity.
    "capacity.alone.uniform": Belief("a PATCH of sku.capacity without sku.name", "accepted", ONE_ANSWER),
    "capacity.alone.flexible": Belief("the same, Flexible", "accepted", ONE_ANSWER),
    "capacity.size": Belief("a PATCH of sku.name without sku.capacity", "accepted, capacity stays", ONE_ANSWER),
    "capacity.sameNumber": Belief("a PATCH of the same capacity makes or deletes machines", "no", ONE_ANSWER),
    "capacity.falls.uniform": Belief("when a batch delete lowers it", "at accept", "capacityFalls"),
    "capacity.falls.flexible": Belief("the same, Flexible", "at accept", "capacityFalls"),
    # The disks of a model after a PATCH of storageProfile.imageReference and nothing beside it.
    "image.osDisk": Belief("osDisk of the model", "stays", "imagePatchResetsDisks"),
    "image.dataDisks": Belief("dataDisks of the model", "stay", "imagePatchDropsDataDisks"),
    "image.newMachine": Belief("osDisk of a machine made after it", "as the model was", "imagePatchResetsDisks"),
    "image.ephemeral": Belief("osDisk of the model, ephemeral", "stays", "imagePatchResetsDisks"),
    # protectionPolicy: where a read shows it, and what POST {set}/delete makes of it.
    "protection.uniform": Belief("where it is shown", "under the set", ONE_ANSWER),
    "protection.flexible": Belief("where it is shown, Flexible", "under the set", ONE_ANSWER),
    "protection.setActions": Belief("POST delete of a machine protected from set actions", "refused", ONE_ANSWER),
    "protection.scaleIn": Belief("POST delete of a machine protected from scale-in", "accepted", ONE_ANSWER),
    # CanNotDelete locks, and what POST {set}/delete makes of them.
    "lock.set": Belief("POST delete under a lock on the set", "accepted", ONE_ANSWER),
    "lock.machine": Belief("POST delete of a locked machine", "accepted", ONE_ANSWER),
    "lock.flexible": Belief("POST delete of two, one of them locked, Flexible", "both go", "lockedVmStopsBatch"),
    "lock.below": Belief("the group's list of locks shows those below", "shown", ONE_ANSWER),
    "lock.above": Belief("a machine's list of locks shows those above", "shown", ONE_ANSWER),
    # Lists, ids and writes that meet.
    "list.deleting.uniform": Belief("the list of machines shows one being deleted", "shown", ONE_ANSWER),
    "list.deleting.flexible": Belief("the same, Flexible", "shown", ONE_ANSWER),
    "id.reused": Belief("a raise gives out the id of a machine that is gone", "no", "idsReused"),
    "delete.gone": Belief("DELETE of a machine that is gone", "204", "goneDeleteFails"),
    "write.busy": Belief("a PATCH while an operation of the set runs", "accepted", "busyRefused"),
}
