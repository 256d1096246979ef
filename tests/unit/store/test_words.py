"""What a person may write about an acceptance, by whichever way it comes in."""

from __future__ import annotations

import pytest

from nexmark.store import Store, StoreError
from nexmark.store.accepting import check_link, check_words
from tests.unit.store.store_builder import night, record


@pytest.mark.parametrize("character", ["\n", "\t", "\x00", "\x1b", "\u202e", "\u2066", "\u200f"])
def test_a_character_that_cannot_be_seen_is_refused_with_its_place(character: str) -> None:
    with pytest.raises(
        StoreError, match=rf"reason: .*U\+{ord(character):04X} at place 4"
    ) as caught:
        check_words("reason", f"abc{character}d")
    assert character not in str(caught.value)


@pytest.mark.parametrize("text", ["more partitions", "Größe, 日本語, שלום, 👩‍💻", "é" * 2000])
def test_the_words_of_any_language_are_taken(text: str) -> None:
    check_words("reason", text)


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", "JavaScript:x", "data:x", "//x", "ftp://x", "https://", "x\ny"]
)
def test_a_link_is_an_address_of_the_web(link: str) -> None:
    with pytest.raises(StoreError, match="link: "):
        check_link(link)


def test_no_link_is_none() -> None:
    assert check_link(" ") is None
    assert check_link(" https://issues.example/7 ") == "https://issues.example/7"


def test_the_store_takes_none_of_them(store: Store) -> None:
    """So the page, the command and the DAG refuse them alike."""
    record(store, night())
    with pytest.raises(StoreError, match="link: give an address"):
        store.accept(night().run, "ada", "fine", ["q0"], link="javascript:alert(1)")
    for words in ({"reason": "a\u202eb"}, {"who": "a\nb"}):
        with pytest.raises(StoreError, match="cannot be seen"):
            store.accept(night().run, **({"who": "ada", "reason": "fine"} | words), queries=["q0"])
    assert store.acceptances() == []
    store.accept(night().run, "ada", "fine", ["q0"])
    (row,) = store.acceptances()
    with pytest.raises(StoreError, match=r"reason: .*cannot be seen"):
        store.withdraw(row.id, "ada", "a\x07b")
