"""Quantiles at random settings: error before and after the answer against the measured one, coverage, width.

python benchmarks/quantiles.py --settings 60 --answers 120
"""

import argparse
import math

import numpy as np

import epsilons as eps
from epsilons.testing import seeded

SHAPES = ("normal", "uniform", "skewed", "two peaks")


def draw_values(random: np.random.Generator, shape: str, people: int) -> np.ndarray:
    """Smooth values within (0, 100)."""
    if shape == "normal":
        return random.normal(50, 15, people).clip(0, 100)
    if shape == "uniform":
        return random.uniform(10, 90, people)
    if shape == "skewed":
        return random.gamma(2, 12, people).clip(0, 100)
    return np.where(random.random(people) < 0.5, random.normal(35, 10, people), random.normal(65, 10, people)).clip(
        0, 100
    )


def measure(random: np.random.Generator, seed: int, answers: int, part: float) -> dict[str, float | str]:
    """One random setting: who is there, what is asked, and how its answers turn out."""
    people, shape = int(10 ** random.uniform(2.3, 3.7)), str(random.choice(SHAPES))
    q = float(random.choice([0.1, 0.25, 0.5, 0.75, 0.9]))
    epsilons = random.choice(np.round(10 ** random.uniform(-1.3, 0.5, 3), 3), people)
    entropy, errors, stated, widths, hits = seeded(seed), [], [], [], 0
    asked = {"bounds": (0, 100), "complete": True, "assume": "unrelated", "for_interval": part}
    predicted = eps.plan("quantile", epsilons, q=q, **asked).best.error
    for _ in range(answers):
        values = draw_values(random, shape, people)
        release = eps.quantile(values, epsilons, q, entropy=entropy, **asked)
        true = float(np.sort(values)[math.floor(q * people)])
        errors.append((release.value - true) ** 2)
        stated.append(math.nan if release.error is None else release.error)
        if part:
            low, high = release.interval()
            widths.append(high - low)
            hits += low - 0.01 <= true <= high + 0.01
    rmse = math.sqrt(np.mean(errors))
    after = float(np.nanmedian(stated)) if not all(map(math.isnan, stated)) else math.nan
    width = float(np.mean(widths)) / rmse if widths else math.nan
    about = f"{people} people, {shape}, q={q}"
    covered = hits / answers if part else math.nan
    return {"about": about, "rmse": rmse, "before": predicted, "after": after, "width": width, "covered": covered}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", type=int, default=60)
    parser.add_argument("--answers", type=int, default=120)
    parser.add_argument("--part", type=float, default=0.4, help="for_interval")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    random = np.random.default_rng(given.seed)
    rows = [measure(random, place, given.answers, given.part) for place in range(given.settings)]
    for row in rows:
        numbers = "  ".join(f"{name} {row[name]:.3g}" for name in ("rmse", "before", "after", "width", "covered"))
        print(f"{row['about']:40}  {numbers}")
    for name in ("before", "after"):
        ratios = [float(row[name]) / float(row["rmse"]) for row in rows if not math.isnan(float(row[name]))]
        near = np.mean([2 / 3 <= ratio <= 1.5 for ratio in ratios])
        print(f"error {name} the answer: within a factor 1.5 of the measured in {near:.0%} of {len(ratios)} settings")
    narrow = [float(row["width"]) for row in rows if float(row["rmse"]) < 5]
    widths = f"on average {np.mean(narrow):.1f} errors, at most {max(narrow):.1f}"
    print(f"widths, where the error is under 5% of the bounds: {widths}")
    print(f"coverage of 95% intervals: on average {np.mean([float(row['covered']) for row in rows]):.3f}")


if __name__ == "__main__":
    main()
