"""The rows in memory: one call keeps rows, indexes and deadlines in step."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import hypothesis
import hypothesis.strategies as st
import pytest

from broker.daemon.deadlines import Deadlines
from broker.daemon.rows import GONE, Gone, Rows
from handlers.rule import Deadline, Keep, Table


@attrs.frozen
class Book:
    """A row for these tests: not every book has a shelf, or a day on which it must be back."""

    title: str
    shelf: str | None = None
    back_at: int | None = None
    revision: int = 1


BOOKS: Table[Book] = Table(
    name="books",
    row=Book,
    keep=Keep.STORED,
    key=lambda book: book.title,
    indexes={"shelf": lambda book: book.shelf, "initial": lambda book: book.title[0]},
    deadline=lambda book: None if book.back_at is None else Deadline(book.back_at),
)
FILMS: Table[Book] = attrs.evolve(BOOKS, name="films")


@pytest.fixture
def deadlines() -> Deadlines:
    return Deadlines()


@pytest.fixture
def rows(deadlines: Deadlines) -> Rows:
    return Rows((BOOKS, FILMS), deadlines)


def titles(found: Iterable[object]) -> list[str]:
    """The titles of the books that were found."""
    return [book.title for book in found if isinstance(book, Book)]


def test_a_row_is_found_by_key_by_every_index_and_among_all(rows: Rows) -> None:
    emma = Book("Emma", "A")
    rows.set(BOOKS, "Emma", emma)
    assert rows.get(BOOKS, "Emma") == emma
    assert rows.find(BOOKS, "shelf", "A") == rows.find(BOOKS, "initial", "E") == rows.all(BOOKS) == [emma]
    assert rows.contents() == {("books", "Emma"): emma}


def test_tables_do_not_see_each_others_rows(rows: Rows) -> None:
    rows.set(BOOKS, "Emma", Book("Emma", "A"))
    assert rows.get(FILMS, "Emma") is None
    assert rows.find(FILMS, "shelf", "A") == rows.all(FILMS) == []


def test_a_changed_row_moves_in_its_indexes_and_in_the_heap(rows: Rows, deadlines: Deadlines) -> None:
    rows.set(BOOKS, "Emma", Book("Emma", "A", back_at=10))
    rows.set(BOOKS, "Emma", Book("Emma", "B", back_at=20))
    assert rows.find(BOOKS, "shelf", "A") == []
    assert titles(rows.find(BOOKS, "shelf", "B")) == ["Emma"]
    assert deadlines.contents() == {("books", "Emma"): Deadline(20)}


def test_a_row_without_a_value_is_in_no_index_and_one_without_a_deadline_not_in_the_heap(
    rows: Rows, deadlines: Deadlines
) -> None:
    rows.set(BOOKS, "Emma", Book("Emma", "A", back_at=10))
    rows.set(BOOKS, "Emma", Book("Emma"))
    assert rows.find(BOOKS, "shelf", "A") == []
    assert deadlines.contents() == {}


@pytest.mark.parametrize("end", [GONE, None])
def test_a_dropped_or_forgotten_row_is_found_nowhere(
    rows: Rows, deadlines: Deadlines, end: Gone | None
) -> None:
    rows.set(BOOKS, "Emma", Book("Emma", "A", back_at=10))
    rows.set(BOOKS, "Emma", end)
    assert rows.get(BOOKS, "Emma") is end
    assert rows.find(BOOKS, "shelf", "A") == rows.all(BOOKS) == []
    assert rows.contents() == {}
    assert deadlines.contents() == {}


def test_a_row_can_follow_one_that_is_gone(rows: Rows) -> None:
    rows.set(BOOKS, "Emma", Book("Emma", "A"))
    rows.set(BOOKS, "Emma", GONE)
    rows.set(BOOKS, "Emma", Book("Emma", "A"))
    assert titles(rows.find(BOOKS, "shelf", "A")) == ["Emma"]


def test_rows_are_found_in_the_order_in_which_they_came_to_the_value(rows: Rows) -> None:
    for title in ("Emma", "Dracula", "Ulysses"):
        rows.set(BOOKS, title, Book(title, "A"))
    rows.set(BOOKS, "Emma", Book("Emma", "B"))
    rows.set(BOOKS, "Emma", Book("Emma", "A"))
    assert titles(rows.find(BOOKS, "shelf", "A")) == ["Dracula", "Ulysses", "Emma"]


SETS = st.lists(
    st.tuples(
        st.sampled_from(["Emma", "Dracula", "Dune"]),
        st.none()
        | st.just(GONE)
        | st.tuples(st.sampled_from(["A", "B", None]), st.none() | st.integers(0, 9)),
    ),
    max_size=30,
)


@hypothesis.given(SETS)
def test_after_any_calls_indexes_and_deadlines_are_those_of_the_rows(
    calls: list[tuple[str, tuple[str | None, int | None] | Gone | None]],
) -> None:
    deadlines = Deadlines()
    rows = Rows((BOOKS,), deadlines)
    expected: dict[str, Book] = {}
    for title, value in calls:
        if isinstance(value, tuple):
            expected[title] = Book(title, *value)
            rows.set(BOOKS, title, expected[title])
        else:
            expected.pop(title, None)
            rows.set(BOOKS, title, value)
    books = expected.values()
    assert rows.contents() == {("books", book.title): book for book in books}
    for shelf in ("A", "B"):
        assert set(titles(rows.find(BOOKS, "shelf", shelf))) == {b.title for b in books if b.shelf == shelf}
    assert deadlines.contents() == {
        ("books", book.title): Deadline(book.back_at) for book in books if book.back_at is not None
    }
    assert all(keys for entries in rows._indexes.values() for keys in entries.values())
