"""The shell's edge: one file a verb; answers on stdout, progress and errors on stderr."""
