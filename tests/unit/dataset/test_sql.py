"""SQL maps to the statistics, word by word, or says which part does not."""

from collections.abc import Iterator
from typing import Any

import pytest

import epsilons as eps
from epsilons.dataset.sql import read_query
from epsilons.testing import seeded
from small_tables import people_dataset, people_table


@pytest.fixture(scope="module")
def people() -> Iterator[eps.Dataset]:
    with people_dataset() as dataset:
        yield dataset


def wanted(query: str, people: eps.Dataset) -> Any:
    return read_query(query, people._terms.schema, "id")


@pytest.mark.parametrize(
    ("aggregate", "statistic", "column", "arguments"),
    [
        ("COUNT(*)", "count", None, {"of": "rows"}),
        ("COUNT(DISTINCT id)", "count", None, {"of": "people"}),
        ("SUM(wage)", "sum", "wage", {}),
        ("AVG(WAGE)", "mean", "wage", {}),
        ('AVG(people."wage")', "mean", "wage", {}),
        ("VAR_POP(wage)", "variance", "wage", {}),
        ("MEDIAN(age)", "median", "age", {}),
        ("MIN(age)", "min", "age", {}),
        ("MAX(age)", "max", "age", {}),
        ("QUANTILE(age, 0.9)", "quantile", "age", {"q": 0.9}),
        ("PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY wage)", "quantile", "wage", {"q": 0.25}),
    ],
)
def test_an_aggregate_is_a_statistic(
    aggregate: str, statistic: str, column: str | None, arguments: dict[str, Any], people: eps.Dataset
) -> None:
    (one,) = wanted(f"SELECT {aggregate} FROM people", people).aggregates
    assert (one.statistic, one.column, dict(one.arguments)) == (statistic, column, arguments)


def test_a_query_asks_what_the_methods_ask() -> None:
    """The same seeded draws by query and by methods, in two datasets, give the same numbers."""
    query = "SELECT region, AVG(wage) AS wage, COUNT(*) FROM people WHERE union = 'yes' AND age >= 20 GROUP BY region;"
    by = {"region": ["north", "south"]}
    with people_dataset() as one, people_dataset() as two:
        answers = one.sql(query, share=0.2, keys=by, entropy=seeded(3))
        where, entropy = "age >= 20 AND union = 'yes'", seeded(3)
        with two.batch(share=0.2) as ask:
            mean = ask.mean("wage", where=where, by=by, entropy=entropy)
            count = ask.count(of="rows", where=where, by=by, entropy=entropy)
        assert sum(past.epsilons[1.0] for past in one.history()) <= 0.2
    assert answers["wage"].value == mean.value
    assert answers["count"].value == count.value
    assert answers.rows()[0] == {"region": "north", "wage": mean.value["north"], "count": count.value["north"]}
    assert answers.to_arrow().column_names == ["region", "wage", "count"]


def test_a_count_of_a_column_counts_the_rows_that_have_it() -> None:
    with people_dataset(preferences=eps.Preferences({}, default=1000)) as people:
        found = people.sql("SELECT COUNT(wage) FROM people WHERE age >= 30 OR age < 25", share=0.5)["count_wage"].value
        table = people_table()
        rows = zip(table["wage"].to_pylist(), table["age"].to_pylist(), strict=True)
        truth = sum(1 for wage, age in rows if wage == wage and (age >= 30 or age < 25))
    assert abs(found - truth) < 1


@pytest.mark.parametrize(
    ("query", "part"),
    [
        ("SELECT 1", "SELECT without FROM"),
        ("SELECT * FROM people", "SELECT *"),
        ("SELECT COUNT(*) FROM people JOIN other ON 1 = 1", "JOIN"),
        ("SELECT COUNT(*) FROM people, other", "JOIN"),
        ("SELECT AVG(wage + 1) FROM people", "AVG of an expression"),
        ("SELECT AVG(DISTINCT wage) FROM people", "AVG of DISTINCT"),
        ("SELECT AVG(wage) + 1 FROM people", "an expression"),
        ("SELECT region, AVG(wage) FROM people", "column 'region' outside GROUP BY"),
        ("SELECT region FROM people GROUP BY region", "no aggregate at all"),
        ("SELECT AVG(wage) FROM people ORDER BY 1", "ORDER BY"),
        ("SELECT AVG(wage) FROM people LIMIT 3", "LIMIT"),
        ("SELECT DISTINCT AVG(wage) FROM people", "DISTINCT"),
        ("SELECT AVG(wage) FROM people HAVING COUNT(*) > 3", "HAVING"),
        ("SELECT STDDEV(wage) FROM people", "STDDEV"),
        ("SELECT AVG(wage) OVER () FROM people", "OVER"),
        ("SELECT AVG(wage) FILTER (WHERE age > 3) FROM people", "FILTER"),
        ("SELECT COUNT(DISTINCT wage) FROM people", "COUNT(DISTINCT) of anything but 'id'"),
        ("SELECT AVG(wage) FROM people GROUP BY ROLLUP (region)", "GROUP BY with ROLLUP, CUBE, GROUPING SETS or ALL"),
        ("SELECT AVG(wage) FROM people GROUP BY lower(region)", "GROUP BY an expression"),
        ("WITH a AS (SELECT 1) SELECT AVG(wage) FROM people", "WITH"),
        ("SELECT AVG(wage) FROM people UNION SELECT AVG(wage) FROM people", "UNION"),
        ("SELECT AVG(wage) FROM read_csv('other.csv')", "FROM anything but people"),
        ("SELECT AVG(wage) FROM other.people", "FROM anything but people"),
        ("SELECT AVG(wage) FROM people TABLESAMPLE 10%", "FROM anything but people"),
        ("DELETE FROM people", "DELETE"),
        ("SELECT AVG(wage) FROM people; DROP TABLE people", "several statements"),
    ],
)
def test_what_is_not_supported_is_named(query: str, part: str, people: eps.Dataset) -> None:
    with pytest.raises(eps.PlanError) as caught:
        wanted(query, people)
    assert caught.value.what == f"Not supported in a query: {part}."


@pytest.mark.parametrize("query", ["", "   ", "SELECT (", "SELECT FROM WHERE", None, 7, "SELECT " * 3000, "'", "/*"])
def test_what_is_no_query_is_said_to_be_none(query: Any, people: eps.Dataset) -> None:
    with pytest.raises(eps.PlanError):
        wanted(query, people)


@pytest.mark.parametrize(
    "condition", ["wage > (SELECT 1)", "1 = 1", "lower(region) = 'a'", "wage > 1; DROP TABLE people", "", "wage +"]
)
def test_a_condition_keeps_to_its_own_rules(condition: str, people: eps.Dataset) -> None:
    before = people.remaining().epsilons
    with pytest.raises(eps.PlanError):
        people.sql(f"SELECT COUNT(*) FROM people WHERE {condition}")
    assert people.remaining().epsilons == before


def test_keys_come_from_the_caller(people: eps.Dataset) -> None:
    with pytest.raises(eps.PlanError, match="GROUP BY region needs its keys"):
        people.sql("SELECT region, COUNT(*) FROM people GROUP BY region")
    with pytest.raises(eps.PlanError, match="by which nothing is grouped"):
        people.sql("SELECT COUNT(*) FROM people", keys={"region": ["north"]})
    with pytest.raises(eps.PlanError, match="are called 'n'"):
        people.sql("SELECT COUNT(*) AS n, AVG(wage) AS n FROM people")
