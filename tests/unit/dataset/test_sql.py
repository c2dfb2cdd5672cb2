"""SQL maps to the statistics, word by word, or says which part does not."""

from collections.abc import Iterator
from typing import Any

import pytest

import epsilons as eps
from epsilons.dataset.sql import read_query
from epsilons.testing import seeded
from support.small_tables import people_dataset, people_table


@pytest.fixture(scope="module")
def people() -> Iterator[eps.Dataset]:
    with people_dataset() as dataset:
        yield dataset


def wanted(query: str, people: eps.Dataset) -> Any:
    return read_query(query, people._facts.schema, "id")


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
        ("QUANTILE_CONT(age, 0.9)", "quantile", "age", {"q": 0.9}),
        ("QUANTILE_DISC(age, 0.9)", "quantile", "age", {"q": 0.9}),
        ("PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY wage)", "quantile", "wage", {"q": 0.25}),
        ("COUNT()", "count", None, {"of": "rows"}),
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
        ("SELECT AVG(wage) FROM people TABLESAMPLE 10%", "TABLESAMPLE"),
        ("SELECT QUANTILE(wage) FROM people", "a quantile that is not one number"),
        ("SELECT QUANTILE(wage, [0.5, 0.9]) FROM people", "a quantile that is not one number"),
        ("DELETE FROM people", "DELETE"),
        ("SELECT AVG(wage) FROM people; DROP TABLE people", "several statements"),
        ("SELECT AVG(wage) FROM people WHERE age > 3 ORDER BY 1", "ORDER BY"),
        ("SELECT AVG(wage) FROM people WHERE age > 3 LIMIT 3", "LIMIT"),
        ("SELECT AVG(wage) FROM people WHERE age > 3 HAVING COUNT(*) > 1", "HAVING"),
        ("SELECT AVG(wage) FROM people WHERE union = 'yes' UNION SELECT 1", "UNION"),
        ("SELECT AVG(wage) FROM people WHERE age IN (SELECT age FROM people)", "a query inside WHERE"),
        ("SELECT AVG(wage) FROM (SELECT * FROM people)", "a query inside FROM"),
        ("SELECT (SELECT 1) FROM people", "a query inside SELECT"),
        ("SELECT AVG(other.wage) FROM people", "a column of 'other'"),
        ("SELECT region, COUNT(*) FROM people GROUP BY 1", "GROUP BY a number"),
        ("SELECT MY_OWN(wage) FROM people", "MY_OWN"),
        ("EXPLAIN SELECT COUNT(*) FROM people", "EXPLAIN"),
    ],
)
def test_what_is_not_supported_is_named(query: str, part: str, people: eps.Dataset) -> None:
    with pytest.raises(eps.PlanError) as caught:
        wanted(query, people)
    assert caught.value.what == f"Not supported in a query: {part}."
    assert caught.value.hint


@pytest.mark.parametrize(
    ("query", "instead"),
    [
        ("SELECT AVG(wage) FROM people ORDER BY 1", "the order of the keys"),
        ("SELECT AVG(wage) FROM people LIMIT 3", "one row for each key"),
        ("SELECT AVG(wage) FROM people HAVING COUNT(*) > 3", "WHERE"),
        ("SELECT DISTINCT AVG(wage) FROM people", "GROUP BY"),
        ("SELECT AVG(wage) OVER () FROM people", "GROUP BY"),
        ("SELECT COUNT(*) FROM people JOIN other ON 1 = 1", "one table"),
        ("WITH a AS (SELECT 1) SELECT AVG(wage) FROM people", "one SELECT"),
        ("SELECT AVG(wage) FROM people UNION SELECT 1", "one query after the other"),
        ("SELECT STDDEV(wage) FROM people", "VAR_POP"),
        ("SELECT SUM(wage) / COUNT(*) FROM people", "compute with the answers"),
        ("SELECT COUNT(*) FROM wages", "FROM people"),
    ],
)
def test_an_error_says_what_to_do_instead(query: str, instead: str, people: eps.Dataset) -> None:
    before = people.history()
    with pytest.raises(eps.PlanError) as caught:
        people.sql(query)
    assert instead in caught.value.hint
    assert people.history() == before


@pytest.fixture(scope="module")
def odd() -> Iterator[eps.Dataset]:
    """Columns that are called like words of SQL, or have spaces."""
    table = people_table()
    for name, like in (("order", "age"), ("from", "age"), ("select", "wage"), ("group", "region"), ("Date", "age")):
        table = table.append_column(name, table[like])
    table = table.append_column("Größe in cm", table["wage"])
    with people_dataset(table, bounds={"Größe in cm": (0, 100), "order": (0, 120)}) as dataset:
        yield dataset


@pytest.mark.parametrize("name", ["order", "from", "select", "union", "group", "Date", "Größe in cm"])
def test_a_column_in_quotes_may_be_called_anything(name: str, odd: eps.Dataset) -> None:
    (one,) = wanted(f'SELECT COUNT("{name}") FROM people', odd).aggregates
    assert one.column == name
    (one,) = wanted(f'SELECT COUNT("{name.upper()}") FROM "people"', odd).aggregates
    assert one.column == name
    (group,) = wanted(f'SELECT "{name}", COUNT(*) FROM people GROUP BY "{name}"', odd).groups
    assert group == name


@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(union) FROM people",
        "SELECT COUNT(DISTINCT union) FROM people",
        "SELECT AVG(select) FROM people",
        "SELECT AVG(wage), MAX(from) FROM people",
        "SELECT union, COUNT(*) FROM people GROUP BY union",
    ],
)
def test_a_word_of_sql_without_quotes_is_told_to_have_them(query: str, odd: eps.Dataset) -> None:
    with pytest.raises(eps.PlanError, match="called like a keyword of SQL") as caught:
        wanted(query, odd)
    assert caught.value.hint in ('"union"', '"select"', '"from"')


def test_union_of_queries_is_not_taken_for_the_column(odd: eps.Dataset) -> None:
    with pytest.raises(eps.PlanError, match="Not supported in a query: UNION"):
        wanted("SELECT AVG(wage) FROM people UNION SELECT AVG(wage) FROM people", odd)
    with pytest.raises(eps.PlanError, match="Not supported in a query: ORDER BY"):
        wanted("SELECT AVG(wage) FROM people ORDER BY 1", odd)


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ("SELECT COUNT(*) FROM people WHERE union = 'yes' -- a comment", "union = 'yes'"),
        ("SELECT COUNT(*) FROM people WHERE 'yes' = union;", "'yes' = union"),
        ('SELECT COUNT(*) FROM people p WHERE p.age > 3 AND ("P".wage < 4)', "age > 3 AND (wage < 4)"),
        ("SELECT COUNT(*) FROM people WHERE (select > 3)", "(select > 3)"),
        ("SELECT COUNT(*) FROM people WHERE age > 3  GROUP BY region", "age > 3"),
    ],
)
def test_the_condition_is_cut_out_as_it_stands(query: str, where: str, odd: eps.Dataset) -> None:
    assert wanted(query, odd).where == where


def test_aliases_name_the_columns_of_the_answer(people: eps.Dataset) -> None:
    query = 'SELECT region AS area, COUNT(*) AS "how many", AVG(p.wage) pay FROM people AS p GROUP BY region'
    answers = people.sql(query, keys={"Region": ["north"]}, share=0.001)
    assert list(answers.rows()[0]) == ["area", "how many", "pay"]
    assert "how many" in str(answers)
    assert "95% interval" in str(answers)
    assert list(people.sql("SELECT QUANTILE(age, 0.9), QUANTILE(age, 0.5) FROM people", share=0.001)) == [
        "quantile_0.9_age",
        "quantile_0.5_age",
    ]
    with pytest.raises(eps.PlanError, match="called 'region'"):
        wanted("SELECT COUNT(*) AS region FROM people GROUP BY region", people)


def test_bounds_are_asked_for_by_column(odd: eps.Dataset) -> None:
    before = odd.history()
    with pytest.raises(eps.PlanError, match="of 'age' needs bounds") as caught:
        odd.sql('SELECT AVG("order"), AVG(age) FROM people')
    assert caught.value.hint == "bounds={'age': (0, 100)}"
    assert odd.history() == before
    with pytest.raises(eps.DataError, match="'region' holds text"):
        odd.sql("SELECT AVG(region) FROM people")
    odd.sql("SELECT AVG(age) FROM people", bounds={"AGE": (0, 120)}, share=0.001)


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


def test_keys_that_were_registered_need_not_be_given_again() -> None:
    """As `by="region"` has it; what is given goes first."""
    query, keys = "SELECT region, COUNT(*) FROM people GROUP BY region", {"region": ["north", "south"]}
    with people_dataset(keys=keys) as people:
        (told,) = people.sql(query, share=0.2).values()
        (given,) = people.sql(query, share=0.2, keys={"region": ["south"]}).values()
    assert list(told.value) == ["north", "south"]
    assert list(given.value) == ["south"]


def test_keys_come_from_the_caller(people: eps.Dataset) -> None:
    with pytest.raises(eps.PlanError, match="GROUP BY region needs its keys"):
        people.sql("SELECT region, COUNT(*) FROM people GROUP BY region")
    with pytest.raises(eps.PlanError, match="by which nothing is grouped"):
        people.sql("SELECT COUNT(*) FROM people", keys={"region": ["north"]})
    with pytest.raises(eps.PlanError, match="are called 'n'"):
        people.sql("SELECT COUNT(*) AS n, AVG(wage) AS n FROM people")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"where": "age > 30"}, "takes no 'where'"),
        ({"by": {"region": ["north"]}}, "takes no 'by'"),
        ({"error": 3}, "takes no 'error'"),
        ({"bounds": (0, 1)}, "bounds go by column"),
        ({"bounds": {"nothing": (0, 1)}}, "no column 'nothing'"),
        ({"keys": ["north"]}, "keys go by column"),
    ],
)
def test_options_that_a_query_does_not_take(options: dict[str, Any], words: str, people: eps.Dataset) -> None:
    before = people.history()
    with pytest.raises(eps.EpsilonsError, match=words):
        people.sql("SELECT AVG(wage) FROM people", **options)
    with pytest.raises(eps.PlanError, match="more than 20,000 characters"):
        people.sql("SELECT " + "COUNT(*), " * 2000 + "COUNT(*) FROM people")
    assert people.history() == before


def test_columns_of_bounds_are_found_in_any_case(people: eps.Dataset) -> None:
    (one,) = people.sql("SELECT MAX(wage) FROM people", bounds={"WAGE": (0, 7)}, share=0.001).values()
    assert 0 <= one.value <= 7
