"""A gateway's file, and a dataset file that names a server: what is refused, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

import epsilons as eps
from epsilons.cli.app import main
from epsilons.dataset.declared import find_server
from epsilons.service.settings import Settings

GOOD = 'store = "sqlite:///gateway.store"\ndatasets = ["people.toml"]\n'


def write(folder: Path, text: str) -> Path:
    (folder / "gateway.toml").write_text(text)
    return folder / "gateway.toml"


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    found = Settings.read(write(tmp_path, GOOD))
    assert found.store == f"sqlite:///{tmp_path}/gateway.store"
    assert found.datasets == (f"{tmp_path}/people.toml",)
    assert (found.host, found.port, found.certificate) == ("127.0.0.1", 8000, None)
    https = 'host = "0.0.0.0"\ncertificate = "a.pem"\ncertificate_key = "a.key"\n'
    assert Settings.read(write(tmp_path, GOOD + https)).certificate_key == f"{tmp_path}/a.key"


def test_a_key_of_a_certificate_that_others_read_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.key").touch(0o640)
    file = write(tmp_path, GOOD + 'certificate = "a.pem"\ncertificate_key = "a.key"\n')
    assert main(["serve", str(file)]) == 4
    assert f"chmod 600 {tmp_path}/a.key" in " ".join(capsys.readouterr().err.split())


def test_links_lead_to_where_others_find_the_server(tmp_path: Path) -> None:
    assert Settings.read(write(tmp_path, GOOD)).public_address == "http://127.0.0.1:8000"
    assert Settings.read(write(tmp_path, GOOD + 'host = "::1"')).public_address == "http://[::1]:8000"
    told = Settings.read(write(tmp_path, GOOD + 'address = "https://stats.example.org/"'))
    assert told.public_address == told.address == "https://stats.example.org"
    here = Settings.read(write(tmp_path, GOOD + 'address = "http://localhost:9000"'))
    assert here.public_address == "http://localhost:9000"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has no store"),
        ("store = 3", "given by its address"),
        ('store = "sqlite:///a"', "listed by their files"),
        ('store = "sqlite:///a"\ndatasets = [1]', "listed by their files"),
        (GOOD + "hots = 1", "Unknown key 'hots'"),
        (GOOD + "host = 1", "'host' is not text"),
        (GOOD + "address = 1", "'address' is not text"),
        (GOOD + 'address = "stats.example.org"', "begins with https://"),
        (GOOD + 'address = "https://stats.example.org/city"', "begins with https://"),
        (GOOD + 'address = "http://stats.example.org"', "begins with https://"),
        (GOOD + 'address = "https://stats.example.org:99999"', "begins with https://"),
        (GOOD + 'address = ""', "begins with https://"),
        (GOOD + "port = 70000", "from 0 to 65535"),
        (GOOD + 'host = "0.0.0.0"', "Plain HTTP is not spoken"),
        (GOOD + 'host = "stats.example.org"', "Plain HTTP is not spoken"),
        (GOOD + 'certificate = "a.pem"', "goes with its key"),
        ("store =", "is not TOML"),
    ],
)
def test_what_cannot_be_served_is_said_before_anything_is_opened(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(eps.DataError, match=told):
        Settings.read(write(tmp_path, text))
    assert [file.name for file in tmp_path.iterdir()] == ["gateway.toml"]


def test_a_dataset_file_may_name_a_server_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "wages.toml"
    file.write_text('server = "https://stats.example.org"\nkey = "a.key"\n')
    assert find_server(file) == ("https://stats.example.org", "wages", f"{tmp_path}/a.key")
    with pytest.raises(eps.DataError, match="behind a server"):
        eps.Dataset.from_toml(file)
    file.write_text('server = "https://stats.example.org"\nsource = "wages.parquet"\n')
    with pytest.raises(eps.DataError, match="Unknown key 'source'"):
        find_server(file)
    file.write_text("server = 3")
    with pytest.raises(eps.DataError, match="not text"):
        find_server(file)
    file.write_text('source = "wages.parquet"')
    assert find_server(file) is None
