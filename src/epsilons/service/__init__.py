"""What listens: HTTP in front of the library. The only room that imports a web server (extra `service`).

problems.py    errors as problem+json, in one place
intake.py      many small requests, one durable transaction
aggregator.py  an aggregator's routes
serving.py     starts the server
"""
