"""A witness in another PostgreSQL: clients need no more than to add rows and to read them."""

from __future__ import annotations

from contextlib import closing

import pytest

from epsilons.errors import EpsilonsError
from epsilons.ledger.heads import Heads, Line
from support.ledger_servers import fresh


@pytest.mark.integration
def test_clients_may_only_add_and_read_rows(postgres_server: str) -> None:
    address = fresh(postgres_server)
    schema = address.rsplit("schema=", 1)[1]
    one, two = (Line(n, f"{n}" * 64, n) for n in (1, 2))
    with closing(Heads(address)) as owner, owner.database.write() as connection:  # the tables are the owner's
        role = f"client_{schema}"
        connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute(f'GRANT USAGE ON SCHEMA "{schema}" TO {role}')
        connection.execute(f'GRANT INSERT, SELECT ON ALL TABLES IN SCHEMA "{schema}" TO {role}')
    with closing(Heads(address.replace("://postgres:@", f"://{role}:@"))) as client:
        assert client.add("a", None, [one]) == one
        assert client.add("a", one, [two]) == two
        assert [row and row.line for row in client.read("a", (1, one.digest))] == [two, one]
        for change in ("UPDATE heads SET seq = 1", "DELETE FROM heads", "DROP TABLE heads"):
            with pytest.raises(EpsilonsError, match="refused"), client.database.write() as connection:
                connection.execute(change)
        assert [row.line for row in client.list_before("a", 3)] == [two, one]
