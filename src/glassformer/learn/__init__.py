"""The lesson: one idea a step, its numbers computed live, in the terminal and as a page that works offline."""
