"""How far long work has come, on stderr: a bar in a terminal, else a line now and then."""


class Bar:
    def __init__(self, quiet: bool, done: str, what: str = "", lines: int = 10) -> None:
        """`done` is what was done to the things (`what`) that are counted; at most `lines` lines without a terminal."""
        from rich.console import Console
        from rich.progress import Progress

        self.console = Console(stderr=True, quiet=quiet, highlight=False)
        self.bar = Progress(console=self.console, transient=True, disable=not self.console.is_terminal)
        self.done, self.what, self.lines = done, f" {what}" if what else "", lines
        self.task = self.bar.add_task(f"{done}{self.what}")
        self.shown = 0

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def show(self, done: int, total: int) -> None:
        self.bar.start()  # not before there is something to show
        self.bar.update(self.task, completed=done, total=total)
        if not self.console.is_terminal and self.lines * done // total > self.shown:
            self.shown = self.lines * done // total
            self.console.print(f"{self.done} {done:,} of {total:,}{self.what}")
