"""Plan before spending: what every mechanism would cost and how far it would err, from public facts alone."""
