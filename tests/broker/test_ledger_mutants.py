"""Each way of getting the concurrency rule wrong is caught by the scripts of a few fixed seeds.

A mutant changes the rule in one place; the play of some script must then find a broken promise.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from broker.daemon import ledger as module
from broker.daemon.deadlines import Deadlines
from broker.daemon.ledger import Batch, Ledger, Write
from broker.daemon.rows import AnyTable
from handlers.rule import Change, Decision, Event, Keep, Now, Row
from tests.support.play import Play
from tests.support.scripts import SEEDS, random_script
from tests.support.toy_disk import Broken, ToyDisk

Mutant = Callable[[pytest.MonkeyPatch], None]
MUTANTS: list[Mutant] = []


def mutant(change: Mutant) -> Mutant:
    """Register a mutant of the rule; its name says what it does wrong."""
    MUTANTS.append(change)
    return change


@pytest.mark.requirement("CP-3.4", "CP-4.12")
@pytest.mark.parametrize("change", MUTANTS, ids=lambda change: change.__name__)
def test_a_mutant_of_the_rule_is_caught(change: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    change(monkeypatch)
    with pytest.raises(Broken):
        play_all_seeds()


def play_all_seeds() -> None:
    """Play the script of every seed."""
    for seed in SEEDS:
        Play().run(random_script(Random(seed)))


# -- effects come too early --------------------------------------------------------------------------------


def release(ledger: Ledger, batch: Batch) -> None:
    """Let the effects of a batch go."""
    for held in batch.held:
        ledger._ready += held.effects
    batch.held.clear()


@mutant
def effects_are_released_at_the_decision(patch: pytest.MonkeyPatch) -> None:
    carry_out = Ledger._carry_out

    def at_once(self: Ledger, event: Event, decision: Decision, newest_read: int) -> None:
        carry_out(self, event, decision, newest_read)
        release(self, self._open)

    patch.setattr(Ledger, "_carry_out", at_once)


@mutant
def effects_are_released_when_the_batch_is_taken(patch: pytest.MonkeyPatch) -> None:
    take_batch = Ledger.take_batch

    def take(self: Ledger) -> Batch | None:
        batch = take_batch(self)
        if batch is not None:
            release(self, batch)
        return batch

    patch.setattr(Ledger, "take_batch", take)


@mutant
def effects_of_the_open_batch_are_released_with_the_one_before(patch: pytest.MonkeyPatch) -> None:
    committed = Ledger.committed

    def both(self: Ledger) -> None:
        committed(self)
        release(self, self._open)

    patch.setattr(Ledger, "committed", both)


@mutant
def a_read_does_not_wait_for_the_batch_on_its_way(patch: pytest.MonkeyPatch) -> None:
    batch_of = Ledger._batch

    def never_on_its_way(self: Ledger, number: int) -> Batch | None:
        batch = batch_of(self, number)
        return None if batch is self._on_its_way else batch

    patch.setattr(Ledger, "_batch", never_on_its_way)


@mutant
def a_get_of_a_dirty_row_does_not_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module._View, "get", unnoted(module._View.get))


@mutant
def a_find_in_a_dirty_table_does_not_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module._View, "find", unnoted(module._View.find))


@mutant
def reading_a_whole_dirty_table_does_not_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module._View, "all", unnoted(module._View.all))


@mutant
def reading_in_order_from_a_dirty_table_does_not_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module._View, "up_to", unnoted(module._View.up_to))


@mutant
def a_count_of_a_dirty_table_does_not_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module._View, "count", unnoted(module._View.count))


def unnoted(read: Callable[..., object]) -> Callable[..., object]:
    """The same reading, but nobody notes what it depends on."""

    def reading(self: module._View, *args: object) -> object:
        newest = self.newest
        answer = read(self, *args)
        self.newest = newest
        return answer

    return reading


@mutant
def a_commit_cleans_rows_that_the_next_batch_wrote_again(patch: pytest.MonkeyPatch) -> None:
    committed = Ledger.committed

    def clean_all(self: Ledger) -> None:
        assert self._on_its_way is not None
        marks = self._on_its_way.marks
        committed(self)
        for key in marks:
            self._dirty.pop(key, None)

    patch.setattr(Ledger, "committed", clean_all)


@mutant
def the_order_of_a_connection_is_ignored(patch: pytest.MonkeyPatch) -> None:
    mark = Ledger._mark

    def only_rows(self: Ledger, key: tuple[str, str], batch: Batch) -> None:
        if key[0]:
            mark(self, key, batch)

    patch.setattr(Ledger, "_mark", only_rows)


# -- effects come too late, twice or never -----------------------------------------------------------------


@mutant
def every_read_waits_for_the_next_commit(patch: pytest.MonkeyPatch) -> None:
    def always_open(self: Ledger, number: int) -> Batch | None:
        return self._open

    patch.setattr(Ledger, "_batch", always_open)


@mutant
def held_effects_happen_after_a_failure(patch: pytest.MonkeyPatch) -> None:
    failed = Ledger.failed

    def tell_all(self: Ledger, refusing: bool) -> None:
        assert self._on_its_way is not None
        held = [*self._on_its_way.held, *self._open.held]
        failed(self, refusing)
        for one in held:
            self._ready += one.effects

    patch.setattr(Ledger, "failed", tell_all)


@mutant
def owed_events_are_dropped(patch: pytest.MonkeyPatch) -> None:
    refuse = Ledger._refuse

    def drop(self: Ledger, event: Event) -> None:
        if not event.owed:
            refuse(self, event)

    patch.setattr(Ledger, "_refuse", drop)


@mutant
def owed_events_are_told_as_unsaved_too(patch: pytest.MonkeyPatch) -> None:
    refuse = Ledger._refuse

    def both(self: Ledger, event: Event) -> None:
        refuse(self, event)
        if event.owed:
            self._ready += event.unsaved()

    patch.setattr(Ledger, "_refuse", both)


@mutant
def nobody_is_told_of_a_failure(patch: pytest.MonkeyPatch) -> None:
    def silent(self: Ledger, event: Event) -> None:
        if event.owed:
            self._owed.append(event)

    patch.setattr(Ledger, "_refuse", silent)


@mutant
def events_of_the_open_batch_are_forgotten_at_a_failure(patch: pytest.MonkeyPatch) -> None:
    failed = Ledger.failed

    def forget(self: Ledger, refusing: bool) -> None:
        self._open.held.clear()
        failed(self, refusing)

    patch.setattr(Ledger, "failed", forget)


@mutant
def owed_events_are_decided_again_batch_by_batch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module, "sorted", lambda held, key: held, raising=False)


# -- memory is not undone as it should be ------------------------------------------------------------------


def undo_in(order: Callable[[list[Change], list[Change]], list[Change]]) -> Callable[[Ledger, bool], None]:
    """`failed`, undoing what `order` makes of the older and the newer batch's changes."""
    failed = Ledger.failed

    def undo(self: Ledger, refusing: bool) -> None:
        assert self._on_its_way is not None
        changes = order(self._on_its_way.log, self._open.log)
        self._open.log.clear()
        self._on_its_way.log[:] = reversed(changes)
        failed(self, refusing)

    return undo


@mutant
def the_open_batch_is_not_undone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "failed", undo_in(lambda older, newer: [*reversed(older)]))


@mutant
def the_batch_on_its_way_is_not_undone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "failed", undo_in(lambda older, newer: [*reversed(newer)]))


@mutant
def changes_are_undone_oldest_first(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "failed", undo_in(lambda older, newer: [*older, *newer]))


@mutant
def only_the_newest_change_of_a_row_is_undone(patch: pytest.MonkeyPatch) -> None:
    def newest(older: list[Change], newer: list[Change]) -> list[Change]:
        return list({(change.table.name, change.key): change for change in [*older, *newer]}.values())

    patch.setattr(Ledger, "failed", undo_in(newest))


@mutant
def memory_rows_are_not_undone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "_undo", undo_unless(lambda change: change.table.keep is Keep.MEMORY))


@mutant
def dropped_rows_do_not_come_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "_undo", undo_unless(lambda change: change.after is None))


def undo_unless(skips: Callable[[Change], bool]) -> Callable[[Ledger, Change], None]:
    """`_undo`, but for some changes."""
    undo = Ledger._undo

    def some(self: Ledger, change: Change) -> None:
        if not skips(change):
            undo(self, change)

    return some


@mutant
def facts_are_undone(patch: pytest.MonkeyPatch) -> None:
    apply = Ledger._apply

    def log_facts(self: Ledger, change: Change, batch: Batch | None) -> None:
        apply(self, change, batch)
        if batch is not None and change.table.keep is Keep.FACT:
            batch.log.append(change)

    patch.setattr(Ledger, "_apply", log_facts)


@mutant
def rows_are_dirty_for_ever_after_a_failure(patch: pytest.MonkeyPatch) -> None:
    failed = Ledger.failed

    def stay_dirty(self: Ledger, refusing: bool) -> None:
        dirty = dict.fromkeys(self._dirty, self._open.number + 1)
        failed(self, refusing)
        self._dirty.update(dirty)

    patch.setattr(Ledger, "failed", stay_dirty)


# -- memory and disk part ----------------------------------------------------------------------------------


@mutant
def a_write_expects_the_revision_before_its_last_change(patch: pytest.MonkeyPatch) -> None:
    def writes(self: Batch) -> list[Write]:
        stored = [change for change in self.log if change.table.keep is Keep.STORED]
        last = {(change.table.name, change.key): change for change in stored}
        return [write_of(change) for change in last.values()]

    patch.setattr(Batch, "writes", writes)


@mutant
def a_row_that_came_and_went_in_one_batch_is_written(patch: pytest.MonkeyPatch) -> None:
    writes_of = Batch.writes

    def writes(self: Batch) -> list[Write]:
        drops = [change for change in self.log if change.table.keep is Keep.STORED and change.after is None]
        known = {(write.table.name, write.key) for write in writes_of(self)}
        return writes_of(self) + [write_of(one) for one in drops if (one.table.name, one.key) not in known]

    patch.setattr(Batch, "writes", writes)


def write_of(change: Change) -> Write:
    """One change as a write of its own."""
    before = None if change.before is None else change.before.revision
    return Write(change.table, change.key, before, change.after)


@mutant
def memory_rows_are_written(patch: pytest.MonkeyPatch) -> None:
    writes_of = Batch.writes

    def writes(self: Batch) -> list[Write]:
        memory = [change for change in self.log if change.table.keep is Keep.MEMORY]
        return writes_of(self) + [write_of(change) for change in memory]

    patch.setattr(Batch, "writes", writes)


@mutant
def settled_rows_are_forgotten_while_they_are_dirty(patch: pytest.MonkeyPatch) -> None:
    apply = Ledger._apply

    def forget(self: Ledger, change: Change, batch: Batch | None) -> None:
        apply(self, change, batch)
        if change.after is not None and change.table.settled(change.after):
            self.rows.set(change.table, change.key, None)

    patch.setattr(Ledger, "_apply", forget)


@mutant
def rows_are_let_go_although_the_next_batch_wrote_them_again(patch: pytest.MonkeyPatch) -> None:
    let_go = Ledger._let_go

    def regardless(self: Ledger, change: Change) -> None:
        newer = self._dirty.pop((change.table.name, change.key), None)
        let_go(self, change)
        if newer is not None:
            self._dirty[change.table.name, change.key] = newer

    patch.setattr(Ledger, "_let_go", regardless)


@mutant
def settled_rows_are_never_let_go(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "_let_go", lambda self, change: None)


@mutant
def a_dropped_row_is_still_read_from_the_disk(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module, "GONE", None)


@mutant
def a_row_read_from_the_disk_stays_in_memory_after_a_failure(patch: pytest.MonkeyPatch) -> None:
    def keep(self: Ledger, change: Change) -> None:
        self.rows.set(change.table, change.key, change.before)

    patch.setattr(Ledger, "_undo", keep)


@mutant
def a_find_takes_the_disk_for_newer_than_memory(patch: pytest.MonkeyPatch) -> None:
    find = module._View.find

    def all_on_disk(self: module._View, table: AnyTable, index: str, value: str) -> list[Row]:
        found = find(self, table, index, value)
        on_disk = self._ledger._disk.look_up(table, index, value) if index in table.lookups else ()
        return found + [row for row in on_disk if row not in found]

    patch.setattr(module._View, "find", all_on_disk)


@mutant
def reading_in_order_and_counting_know_only_the_disk(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module._View, "_dirty_rows", lambda self, table: {})


@mutant
def reading_in_order_and_counting_know_only_the_rows_that_are_there(patch: pytest.MonkeyPatch) -> None:
    dirty_rows = module._View._dirty_rows

    def without_drops(self: module._View, table: AnyTable) -> dict[str, Row | None]:
        return {key: row for key, row in dirty_rows(self, table).items() if row is not None}

    patch.setattr(module._View, "_dirty_rows", without_drops)


@mutant
def reading_in_order_and_counting_take_the_disk_for_newer_than_memory(patch: pytest.MonkeyPatch) -> None:
    others = ToyDisk._others
    patch.setattr(ToyDisk, "_others", lambda self, table, besides: others(self, table, ()))


@mutant
def reading_in_order_ends_at_the_last_row_of_the_disk(patch: pytest.MonkeyPatch) -> None:
    up_to = module._View.up_to

    def on_disk_first(
        self: module._View, table: AnyTable, index: str, value: str, limit: int, start: str = ""
    ) -> list[Row]:
        found = up_to(self, table, index, value, limit, start)
        committed = [row for row in found if (table.name, table.key(row)) not in self._ledger._dirty]
        return found if len(committed) == len(found) else committed

    patch.setattr(module._View, "up_to", on_disk_first)


@mutant
def reading_in_order_knows_only_rows_in_memory(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ToyDisk, "up_to", lambda *arguments: [])


@mutant
def counting_knows_only_rows_in_memory(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ToyDisk, "count", lambda *arguments: 0)


# -- the disk refuses, time passes ---------------------------------------------------------------------------


@mutant
def writes_are_taken_while_the_disk_refuses_them(patch: pytest.MonkeyPatch) -> None:
    decide = Ledger._decide

    def regardless(self: Ledger, event: Event, now: Now) -> None:
        refusing, self.refusing = self.refusing, False
        decide(self, event, now)
        self.refusing = refusing

    patch.setattr(Ledger, "_decide", regardless)


@mutant
def deadlines_fire_while_the_disk_refuses_writes(patch: pytest.MonkeyPatch) -> None:
    fire_due = Ledger.fire_due

    def regardless(self: Ledger, now: Now | None = None) -> None:
        refusing, self.refusing = self.refusing, False
        fire_due(self, now)
        self.refusing = refusing

    patch.setattr(Ledger, "fire_due", regardless)


@mutant
def deadlines_are_not_looked_at_before_a_decision(patch: pytest.MonkeyPatch) -> None:
    def only_the_event(self: Ledger, event: Event) -> None:
        self._decide(event, self._now())

    patch.setattr(Ledger, "decide", only_the_event)


@mutant
def a_deadline_is_gone_once_it_was_taken(patch: pytest.MonkeyPatch) -> None:
    take_due = Deadlines.take_due

    def take(self: Deadlines, now: Now) -> tuple[str, str] | None:
        key = take_due(self, now)
        if key is not None:
            self.set(key, None)
        return key

    patch.setattr(Deadlines, "take_due", take)


@mutant
def a_change_leaves_the_old_deadline(patch: pytest.MonkeyPatch) -> None:
    set_deadline = Deadlines.set

    def never_later(self: Deadlines, key: tuple[str, str], deadline: object) -> None:
        if deadline is None or key not in self.contents():
            set_deadline(self, key, deadline)  # type: ignore[arg-type]

    patch.setattr(Deadlines, "set", never_later)


@mutant
def owed_events_are_decided_while_the_disk_refuses_writes(patch: pytest.MonkeyPatch) -> None:
    failed = Ledger.failed

    def resume_at_once(self: Ledger, refusing: bool) -> None:
        failed(self, refusing)
        self.resume()
        self.refusing = refusing

    patch.setattr(Ledger, "failed", resume_at_once)
