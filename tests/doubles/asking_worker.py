"""A process that asks: `python asking_worker.py HOME PROFILES N FIRST BUDGET`. Prints how it ended."""

import sys
from pathlib import Path

from asking_tools import asking, question

from pipelines.errors import BudgetSpent
from pipelines.llm.questions import NOT_ASKED_YET
from pipelines.settings import Llm


def main() -> None:
    home, profiles, n, first, budget = sys.argv[1:]
    asked = [question(i) for i in range(int(first), int(first) + int(n))]
    try:
        with asking(Path(home), Llm(profiles=Path(profiles)), budget) as ask:
            replies = ask.ask("emotions", asked)
        left = sum(reply.reason == NOT_ASKED_YET for reply in replies)
        said = f"spent {left}" if left else f"answered {sum(reply.value is not None for reply in replies)}"
        sys.stdout.write(f"{said}\n")
    except BudgetSpent as error:
        sys.stdout.write(f"spent {error.waiting}\n")


if __name__ == "__main__":
    main()
