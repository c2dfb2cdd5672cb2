"""What an epsilon means to a person, in odds: of 100 people like you, of how many a guess is right.

A coin decides between two states of the world: in one your data is used as it is, in the other it is not there, or is
somebody else's. Without answers a guess is right half of the time. Whatever is released under epsilon is at most
e^epsilon times as likely in one state as in the other. Let p >= q be the two chances of an outcome: p <= e^epsilon q,
so that p is at most e^epsilon / (1 + e^epsilon) of p + q. The best guess is right with half the sum of all p, and so
with a chance of at most e^epsilon / (1 + e^epsilon). Randomized response reaches it. With a delta, p <= e^epsilon q on
all but delta of the outcomes, and the chance is at most (e^epsilon + delta) / (1 + e^epsilon).

A grant by period is one for all that is released in a period. k periods add up to k times that, so that nothing is said
of all answers there will ever be.
"""

import math

#: What a guess is about, by neighbours.
_GUESSED = {
    "absent": "whose data was used",
    "replace": "which of two values is whose",
}
OF = 100


def count_right(epsilon: float, delta: float = 0.0) -> int:
    """Of 100 people, of how many a guess is right at most, on average; rounded up.

    >>> count_right(0.1), count_right(1), count_right(10)
    (53, 74, 100)
    """
    coin = math.exp(-epsilon)
    return min(OF, math.ceil(OF * (1 + delta * coin) / (1 + coin)))


def tell_odds(epsilon: float, neighbors: str, delta: float = 0.0, period: str | None = None) -> str:
    """The same as a sentence; infinite stands for public. `period` is that of a grant by year, month, ...

    >>> print(tell_odds(math.inf, "absent"))
    Nothing is promised: an answer may tell all that your data says.
    """
    if math.isinf(epsilon):
        return "Nothing is promised: an answer may tell all that your data says."
    right = count_right(epsilon, delta)
    most = f"at most {right}" if right < OF else "nearly all of them"
    answers = "all answers there will ever be" if period is None else f"all answers of one {period}"
    guess = f"Of {OF} people like you, whoever guesses {_GUESSED[neighbors]} is right about {OF // 2} by tossing a coin"
    more = "" if period is None else f" Every {period} may tell as much again."
    return f"{guess}, and {most} with {answers}.{more}"
