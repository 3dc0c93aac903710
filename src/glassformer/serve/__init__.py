"""The HTTP server: a queue that joins the requests of all clients, and the dialects that clients speak."""
