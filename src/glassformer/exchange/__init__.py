"""Models of other houses in and out: their settings and weights under our names."""
