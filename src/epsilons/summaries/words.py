"""Columns of words as features of models: of k words the first k - 1 become a feature each."""

from collections.abc import Sequence
from typing import Any

#: (column, its words) of a table's columns of words.
Words = tuple[tuple[str, tuple[str, ...]], ...]


def word_names(name: Any, words: Sequence[str]) -> list[str]:
    """What the features of words are called."""
    return [f"{name}={word}" for word in words[:-1]]


def find_words(words: Words) -> dict[str, tuple[str, str]]:
    """(column, word) of the features that stand for a word, by their names."""
    return {
        name: (column, word)
        for column, several in words
        for name, word in zip(word_names(column, several), several, strict=False)
    }
