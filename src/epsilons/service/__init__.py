"""What listens: HTTP in front of the library. The only room that imports a web server (extra `service`)."""
