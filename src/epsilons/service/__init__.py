"""What listens: HTTP in front of the library. The only room that imports a web server (extra `service`).

aggregator.py  an aggregator's routes, and errors as problem+json
serving.py     starts the server; gathers many small requests into one durable transaction
"""
