"""Measurements against peers and against published figures; each writes a dated result. See README.md here."""
