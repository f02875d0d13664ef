"""The table of recipes in docs/recipes.md, made from the recipes: `python -m tools.recipes` writes it there."""

from pipelines.settings import ROOT
from pipelines.train.recipe import Recipe, load_recipe, recipe_names
from pipelines.train.trainers import TRAINERS

PAGE = ROOT / "docs" / "recipes.md"
HEADING = "## Recipes\n"


def table() -> str:
    """A line a recipe: what trains it on which rows, from what it starts, and what else `--start` takes."""
    head = "| recipe | what | trainer | rows | starts from | `--start` takes a run of |\n|---|---|---|---|---|---|\n"
    return head + "".join(map(_line, map(load_recipe, recipe_names())))


def _line(recipe: Recipe) -> str:
    base = recipe.paper.get(TRAINERS[recipe.trainer].model) or recipe.gpu["start"]
    first = recipe.start(recipe.ablation(""))
    start = f"the model of `{first}`" if first else base
    takes = ", ".join(f"`{name}`" for name in (*recipe.starts, recipe.name))
    return f"| `{recipe.name}` | {recipe.about} | {recipe.trainer} | `{recipe.rows}` | {start} | {takes} |\n"


def with_table(page: str) -> str:
    """The page with the table in its place: behind the first paragraph of its section."""
    before, heading, section = page.partition(HEADING)
    words, _, rest = section.partition("\n| ")
    after = rest.partition("\n\n")[2]
    return f"{before}{heading}{words}\n{table()}\n{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
