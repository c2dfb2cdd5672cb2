"""What an epsilon means to a person, in odds: of 100 people like you, of how many a guess is right.

A coin decides between two states of the world: in one your data is used as it is, in the other it is not there, or is
somebody else's. Without answers a guess is right half of the time. Whatever is released under epsilon is at most
e^epsilon times as likely in one state as in the other. Let p >= q be the two chances of an outcome: p <= e^epsilon q,
so that p is at most e^epsilon / (1 + e^epsilon) of p + q. The best guess is right with half the sum of all p, and so
with a chance of at most e^epsilon / (1 + e^epsilon). Randomized response reaches it.
"""

import math

#: What a guess is about, by neighbours.
_GUESSED = {
    "absent": "whose data was used",
    "replace": "which of two values is whose",
}
OF = 100


def count_right(epsilon: float) -> int:
    """Of 100 people, of how many a guess is right at most, on average; rounded up.

    >>> count_right(0.1), count_right(1), count_right(10)
    (53, 74, 100)
    """
    return min(OF, math.ceil(OF / (1 + math.exp(-epsilon))))


def tell_odds(epsilon: float, neighbors: str) -> str:
    """The same as a sentence; infinite stands for public.

    >>> print(tell_odds(math.inf, "absent"))
    Nothing is promised: an answer may tell all that your data says.
    """
    if math.isinf(epsilon):
        return "Nothing is promised: an answer may tell all that your data says."
    right = count_right(epsilon)
    most = f"at most {right}" if right < OF else "nearly all of them"
    guess = f"Of {OF} people like you, whoever guesses {_GUESSED[neighbors]} is right about {OF // 2} by tossing a coin"
    return f"{guess}, and {most} with all answers there will ever be."
