"""One file per command. A file `some_name.py` holds `command`, and is run as `epsilons some-name`."""
