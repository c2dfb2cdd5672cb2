"""What listens: HTTP in front of the library. The only room that imports a web server (extra `service`).

serving.py      what every service shares: replies, refusals, bodies, the server itself
aggregator.py   an aggregator of a collection
gateway.py      the gateway: finds a route and a key, and lets in;  routes.py: the ways in, and who may take them
steward.py      what stewards do;  people.py: what people do;  operating.py: what operators see
questions.py    how a question is run: kept, stored, or new in a turn;  workers.py: several processes
keys.py         who has a key;  sessions.py: personal links and cookies;  pages/: what is seen in a browser
limits.py       what a role may take up;  replies.py: requests that may be repeated;  store.py: the tables of all these
clock.py        when an answer leaves;  holdings.py: the datasets that are served
settings.py     gateway.toml;  openapi.py: what the gateway takes and gives;  describing.py: how that is written
"""
