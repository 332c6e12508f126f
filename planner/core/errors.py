"""What an interface can tell a person: which field is wrong, and the fix."""


class PlanningError(Exception):
    """A fault of the question, not of the program: it names the field, says what is wrong and how to mend it."""

    def __init__(self, *, field: str, message: str, fix: str) -> None:
        super().__init__(f"{field}: {message} Fix: {fix}")
        self.field = field
        self.message = message
        self.fix = fix


class BadInput(PlanningError):
    """The question itself is malformed (exit code 2, HTTP 400)."""


class Refusal(BadInput):
    """vLLM itself stops at this, by the rule of this id: found while sizing, it is an answer."""

    def __init__(self, rule: str, *, field: str, message: str, fix: str) -> None:
        super().__init__(field=field, message=message, fix=fix)
        self.rule = rule


class Unknown(PlanningError):
    """The question is well formed, and we do not know the answer (exit code 3, verdict `unknown`)."""
