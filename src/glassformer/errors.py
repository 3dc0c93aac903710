"""The one exception for whatever a user can cause; every edge (shell, HTTP) shows it as one sentence and a hint."""


class UserError(Exception):
    """What is wrong and what was given (`message`), and what to do about it (`hint`)."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


def require(condition: bool, message: str, hint: str = "") -> None:
    """Raise a UserError unless the condition holds.

    Where a model runs, write `if` and `raise`: a message made in vain pins a compiled graph to the sizes in it.
    """
    if not condition:
        raise UserError(message, hint)
