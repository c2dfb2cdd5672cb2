"""The texts that the terminal and the report share, in plain words."""

from __future__ import annotations

TAGLINE = "Differential privacy where everyone sets their own epsilon."

DATA = (
    "Weekly wages, schooling and part-time work of {people:,} men in the United States, from the Current Population "
    "Survey of March 1988 (data set CPS1988 of the R package AER), in dollars of 1992. The data are public and real."
)

SIMULATED = "The preferences are simulated: nobody was asked in 1988."

NOISE = (
    "The noise is real: it comes from the operating system's generator and is never seeded, so every run gives other "
    "answers."
)

TRUE_ERROR = "True error: how far this answer lies from the truth. A demo may look; an analyst could not."

PREDICTED = (
    "Predicted error: how far off an answer is expected to be (root mean square), known before anything is asked, from "
    "public facts alone."
)

NEIGHBORS = {
    "absent": (
        "Whatever is published, it would have been almost as likely if any one person's answer had been missing. "
        "“Almost” is measured by epsilon, and each person chose their own: the chance of any result changes by a "
        "factor of at most e^ε, which is 1.01 for ε = 0.01 and 2.72 for ε = 1."
    ),
    "replace": (
        "Whatever is published, it would have been almost as likely if any one person's answer had been another. "
        "“Almost” is measured by epsilon, and each person chose their own: the chance of any result changes by a "
        "factor of at most e^ε, which is 1.01 for ε = 0.01 and 2.72 for ε = 1."
    ),
}

NOT_PROMISED = (
    "What people as a whole are like is not hidden. If part-time workers earn less on average, everyone may learn it, "
    "also about people who took no part.",
    "Several answers about the same people add up. The ledger adds them and stops where somebody's grant ends; what is "
    "asked of the same people elsewhere it does not know.",
    "How long a computation takes may say something to somebody who can measure it: timing is not protected.",
    "The error bars hold if preferences say nothing about values, which is true of the made-up preferences here. The "
    "privacy holds either way.",
)

SHARE = (
    "Every question may use a tenth of what each person granted. Charges are written to a ledger, durably, before any "
    "wage is read; the ledger adds them up, and whoever has nothing left is not used any more."
)

COMPARED = (
    "The first row of each table is the answer that was released and charged. The others are for comparison: each of "
    "those mechanisms has books of its own here, as if it alone had been used. Nobody should do that with real people."
)

LEFT = (
    "What the ledger says after {releases} answers, on average over each group. The last column says how many more "
    "questions that charge like the last one there could be."
)

AGAIN = (
    "Asked again, the mean wage is the same to the last digit: the stored answer, at no charge. The ledger's {entries} "
    "entries were recounted from the first one, and add up."
)

MECHANISMS = {
    "minimum": "treats everyone like the strictest person of all",
    "threshold": "uses only people who granted enough, all at the same epsilon",
    "sample": "draws people at random, open people more likely, then treats all alike",
    "stretching": "shrinks each value by its owner's epsilon; the answer comes out too small, or too near the middle",
    "exponential": "picks an answer at random, likelier the fewer (and stricter) people would need to differ for it",
    "mixed": "lets people with the same epsilon answer together, then mixes these answers",
    "weighted": "lets open people count more, up to a cap, with one noise for all",
    "smooth-sensitivity": "measures, privately, how far one person could move this very answer; all at the strictest",
    "robust": "like weighted, but safe even if open people differ from strict ones",
}

GLOSSARY = {
    "epsilon (ε)": (
        "How much privacy a person gives up, at most. Small is private: 0.01 is very strict, 1 is relaxed. It bounds "
        "how much anybody can learn about this one person from what is published."
    ),
    "roster": "Who was asked, and which epsilon each chose. It is public; the values are what is protected.",
    "mechanism": "A recipe that turns people's values into one noisy answer and keeps everybody's epsilon.",
    "noise": "A random amount added on purpose, so that no single person shows in the answer.",
    "charge": "The part of a person's epsilon that an answer uses up; never more than the person has left.",
    "ledger": "The books: what everybody granted, and what every answer charged. It is written before data is read.",
    "people used": "The share of people whose values can move the answer; for a random sample, the expected share.",
    "predicted error": (
        "How far off an answer is expected to be, as a root mean square. It is computed from the roster and public "
        "guesses alone, so seeing it costs no privacy."
    ),
    "true error": "How far off an answer is. Seeing it means seeing the data, so outside a demo nobody may.",
    "95% interval": "A range that holds the true value in 95 of 100 such answers.",
    "mean, median": "The mean is the total divided by the number of people. Half of the people lie below the median.",
}
