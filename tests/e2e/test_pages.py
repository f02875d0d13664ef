"""Every command of every page is run: a page is one session, on a home with a release, a vendor of models and a hub on
this machine. What is the reader's own (a file, a row, a name) has a stand-in; what cannot run beside other tests is
named with the test that runs it, and is one that the command line takes. The settings of a page are read as a home
reads them.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from textwrap import dedent

import polars as pl
import pytest
import typer
from filled_sheet import opened
from labels_made import LABELLED_TOML
from message_receiver import Receiver
from reviewed import ANSWERS, label, lines, read_tasks
from spreadsheet import workbook
from typer.main import get_command
from typer.testing import CliRunner
from vendor_profile import PROFILE

from pipelines.cli import app
from pipelines.llm.profiles import profiles
from pipelines.settings import ROOT, Settings, load
from pipelines.store import Store
from pipelines.train.experiment import read_experiment
from tests.doubles.hub import Hub
from tests.doubles.vendor import Vendor

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

DOCS = ROOT / "docs"
PAGES = [path.name for path in sorted(DOCS.glob("*.md")) if not path.name.endswith(".zh.md")]
_BLOCK = re.compile(r"^```(?:console|sh)\n(.*?)^```$|((?:^ {4,}\S.*\n)+)", re.DOTALL | re.MULTILINE)
_PROGRAM = r"(?:\.venv/bin/)?gongqing|scrapy|python|inspect|export|make|ray|pip|systemctl|sudo|rsync|cp"
_COMMAND = re.compile(rf"^ *(?:\$ )?((?:[A-Z_]+=\S+ )*(?:{_PROGRAM}) .*)$")
USAGE_ERROR = typer.BadParameter.__bases__[0]  # typer has it under no name of its own

# Who runs a command that does not run here, by what it begins with.
ELSEWHERE = {
    r"gongqing train mine": "verl/test_how_to_page.py",
    r"gongqing crawl (xinli001|our_forum)": "e2e/test_crawl_command.py",  # a site; against the replica
    r"scrapy crawl|python -m samples.replica|gongqing crawl replica": "e2e/crawlers/test_scrapy_command.py",
    r"gongqing review pu(sh|ll)": "e2e/test_potato.py",  # a server of a team
    r"gongqing train (?!.*--dry-run)": "verl/test_configurations.py",  # every recipe composed; others train
    r"gongqing experiment": "verl/test_experiment.py",
    r"gongqing evaluate \w+ --suite": "verl/test_evaluated_runs.py",
    r"inspect eval": "integration/evaluate/test_benchmarks.py",
    r"python -m pipelines.judge.service": "e2e/test_judge_service.py",
    r"python -m pipelines.train": "verl/test_encoder_on_psyqa.py",
    r"ray |.*--engine ray": "e2e/test_on_ray.py",
    r"gongqing ledger give-up-batch": "integration/test_cli.py",  # of a batch that is lost
    r"gongqing ledger close-budget": "integration/test_cli.py",  # of a run that was broken off
    r"gongqing evaluate report": "integration/evaluate/test_evaluations.py",
    r"gongqing show rollouts": "verl/test_training_assets.py",
    r"make (train-env|demo|drill)": "../.ci/run",
    r"systemctl|sudo|rsync|cp": "e2e/test_operating_page.py",
    r".*\bpip ": "../.ci/run",
}
# Pages on whose home models are asked.
ASKED = {"asking.md", "how-to.md"}
# Pages whose commands other tests run, as sessions too.
WHOLE_PAGES = {"index.md", "using.md", "operating.md"}


def commands(page: str) -> list[str]:
    """The commands of console blocks and of indented ones, without comments."""
    found = [
        line
        for block in _BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
        for line in "".join(block).splitlines()
    ]
    return [match[1].split("  # ")[0].strip() for line in found if (match := _COMMAND.match(line))]


def elsewhere(command: str) -> str | None:
    return next((test for pattern, test in ELSEWHERE.items() if re.match(pattern, command)), None)


def blocks(page: str, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}


def run_here(page: str) -> list[str]:
    return [command for command in commands(page) if not elsewhere(command)]


class Reader:
    """Somebody at a terminal: a folder with a few files, a home, what was exported. `gongqing` runs in this process."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.home = folder, home
        self.environment = {"GONGQING_HOME": str(home), "GONGQING_AUTHOR_KEY": "a-secret-of-at-least-16-bytes"}
        self.environment |= {"DASHSCOPE_API_KEY": "a key that is sent nowhere"}

    def run(self, command: str) -> str:
        """What a command that succeeds prints."""
        words = shlex.split(command)
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            self.environment[name] = value
            return ""
        if "=" in words[0]:  # the client of the Hub reads its address once
            script = f"{shlex.quote(sys.executable)} -c 'from pipelines.cli import main; main()'"
            ran = subprocess.run(
                command.replace("gongqing", script, 1), shell=True, env={**os.environ, **self.environment}, **PIPES
            )
            assert ran.returncode == 0, f"{command}\n{ran.stdout}"
            return ran.stdout
        assert words[0].endswith("gongqing"), command
        ran = CliRunner().invoke(app, words[1:], env=self.environment)
        assert ran.exit_code == 0, f"{command}\n{ran.output}\n{ran.exception!r}"
        self._answer(ran.output)
        return ran.output

    def _answer(self, printed: str) -> None:
        """Whoever was given tasks answers them, in files here: what a page then imports."""
        for name, path in re.findall(r"^(\S+): [\d,]+ tasks in (.+)$", printed, re.MULTILINE):
            tasks = read_tasks(Path(path))
            (self.folder / f"labels-of-{name}.jsonl").write_text(lines(*map(label, tasks)), encoding="utf-8")
            if (sheet := Path(path).with_suffix(".xlsx")).exists():
                with opened(sheet) as filled:
                    for task in tasks:
                        filled.give(task.task_id, ANSWERS[task.kind])
                shutil.copy(sheet, self.folder / "filled.xlsx")


def psyqa(posts: list[dict]) -> str:
    """Our samples in PsyQA's form."""
    return json.dumps(
        [
            {
                "questionID": number,
                "question": post["title"],
                "description": post["description"],
                "keywords": post["topic"],
                "answers": [{"answer_text": answer["text"]} for answer in post["answers"]],
            }
            for number, post in enumerate(posts)
        ],
        ensure_ascii=False,
    )


@pytest.fixture(scope="module")
def vendor() -> Iterator[Vendor]:
    with Vendor() as vendor:
        yield vendor


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    with Hub() as hub:
        yield hub


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def reader(
    request: pytest.FixtureRequest, released_home: Path, vendor: Vendor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Reader:
    """In a folder of the files that the pages name, with a home of everything, whose models the vendor serves."""
    home, other = Path(shutil.copytree(released_home, tmp_path / "home")), tmp_path / "other"
    other.mkdir()
    served = "".join(
        PROFILE.format(url=vendor.base_url).replace("qwen-plus", json.dumps(one)).replace("300", "3000")
        for one in profiles()
    )
    (home / "gongqing.toml").write_text(LABELLED_TOML, encoding="utf-8")
    asked = [home, other] if request.node.callspec.params["page"] in ASKED else [other]
    for one in asked:
        (one / "profiles.toml").write_text(served, encoding="utf-8")
        with (one / "gongqing.toml").open("a", encoding="utf-8") as settings:
            settings.write('[llm]\nprofiles = "profiles.toml"\n')
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    write_files(folder)
    return Reader(folder, home)


def write_files(folder: Path) -> None:
    """The files that pages name and that are the reader's."""
    (folder / "samples").symlink_to(ROOT / "samples")
    posts, dialogues = (
        [json.loads(line) for line in (ROOT / "samples" / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()]
        for kind in ("posts", "dialogues")
    )
    (folder / "PsyQA_full.json").write_text(psyqa(posts), encoding="utf-8")
    with zipfile.ZipFile(folder / "data.zip", "w") as smile:
        for number, dialogue in enumerate(dialogues):
            turns = [{"role": SMILE[turn["role"]], "content": turn["text"]} for turn in dialogue["turns"]]
            smile.writestr(f"data/{number}.json", json.dumps(turns, ensure_ascii=False))
    mapping = next(one for one in blocks("mapping.md", "toml") if 'sheet = "帖子"' in one)
    (folder / "posts.toml").write_text(mapping, encoding="utf-8")
    sheet = [
        ["编号", "标题", "正文", "标签", "时间", "回答", "有用"],
        *([n, one["title"], one["description"], None, None, None, None] for n, one in enumerate(posts)),
    ]
    (folder / "posts.xlsx").write_bytes(workbook({"帖子": sheet}))
    [gold] = blocks("calibrating.md", "json")
    (folder / "gold.jsonl").write_text(gold, encoding="utf-8")
    question = json.loads(blocks("reviewing.md", "json")[1])
    answers = [{"model": model, "text": f"{model}的回答"} for model in "abc"]
    question_lines = [json.dumps({**question, "question_id": f"q{n}", "answers": answers}) for n in range(3)]
    (folder / "answers-of-all-models.jsonl").write_text("\n".join(question_lines), encoding="utf-8")


SMILE = {"seeker": "client", "supporter": "counselor"}


AT_HUB = "HF_ENDPOINT={hub} HF_TOKEN={token}"
# What stands for the reader's own, by page.
STAND_INS: dict[str, dict[str, str]] = {
    "alerts.md": {"feishu://TOKEN mailtos://USER:PASSWORD@HOST?to=TEAM@HOST": "{receiver}"},
    "erasing.md": {
        "xinli001:100841600 --dry-run": "sample:p022 --dry-run",
        "xinli001:100841600": "sample:p021",
        "psyqa:4394/1c9f0a2b": "{answer}",
        "smile:10071": "sample:d01",
        "u_5be1c06f2d9a7e34": "{author}",
        "psyqa_full.json": "dialogues.jsonl",
    },
    "how-to.md": {"coe labels.jsonl": "coe labels-of-王老师.jsonl", "show raw_posts": "show imported_posts"},
    "publishing.md": {
        "gongqing export hub OWNER/NAME": f"{AT_HUB} gongqing export hub OWNER/NAME",
        "export jsonl DIR": "export jsonl JSONL",
        "gongqing import hub OWNER/NAME --revision TAG": f"GONGQING_HOME={{other}} {AT_HUB} "
        "gongqing import hub me/empathy --revision v1",
        "export HF_TOKEN=…": "export HF_TOKEN={token}",
        "restore NAME DIR": "restore v1 RESTORED",
        "OWNER/NAME": "me/empathy",
        "HF_ENDPOINT=http://127.0.0.1:8767": "HF_ENDPOINT={hub}",
    },
    "releasing.md": {"release v1": "release v2 --allow not_from_a_model"},
    "reproducing.md": {"~/corpus": "{other}"},
    "reviewing.md": {"tasks-u_5be1c06f2d9a7e34.xlsx": "filled.xlsx"},
    "training.md": {"release v1": "release v2 --allow not_from_a_model"},
    "training-env.md": {"$PWD": "{other}"},
}


@pytest.mark.parametrize("page", [page for page in PAGES if page not in WHOLE_PAGES and run_here(page)])
def test_the_commands_of_a_page_run_one_after_the_other(
    page: str, reader: Reader, hub: Hub, receiver: Receiver, tmp_path: Path
):
    post = (
        Store(reader.home / "data")
        .read("imported_posts")
        .filter(pl.col("post_id") == "sample:p002")
        .collect()
        .row(0, named=True)
    )
    own = {"author": post["author"], "answer": post["answers"][0]["answer_id"], "receiver": receiver.address}
    own |= {"hub": hub.url, "token": hub.token, "other": str(tmp_path / "other")}
    for command in run_here(page):
        own_words = command
        for old, new in STAND_INS.get(page, {}).items():
            own_words = own_words.replace(old, new.format_map(own))
        reader.run(own_words)


def problem(command: str) -> str | None:
    """Why the command line does not take it."""
    words = [*takewhile(lambda word: word not in {"|", ">", "&&"}, shlex.split(command, comments=True))]
    called = get_command(app)
    while words and words[0] in getattr(called, "commands", {}):
        called, words = called.commands[words[0]], words[1:]
    try:
        with called.make_context("gongqing", words):
            return None
    except USAGE_ERROR as error:
        return error.format_message()


def test_what_another_test_runs_is_taken_and_that_test_is_there():
    left = {command for page in PAGES for command in commands(page) if elsewhere(command)}
    assert 30 < len(left) < 80
    ours = {command.partition("gongqing ")[2] for command in left if "gongqing " in command}
    assert {command: why for command in ours if (why := problem(command))} == {}
    assert problem("refresh --no-such-option") is not None
    assert [test for test in ELSEWHERE.values() if not (ROOT / "tests" / test).exists()] == []
    assert [pattern for pattern in ELSEWHERE if not any(re.match(pattern, command) for command in left)] == []


def test_every_language_of_a_page_is_read_by_a_test():
    found = {
        (page, language)
        for page in PAGES
        for language in re.findall(r"^```(\w+)$", (DOCS / page).read_text(), re.MULTILINE)
    }
    found -= {one for one in found if one[1] in {"console", "sh"}}
    assert found == {*READ_BY}
    for (page, _), test in READ_BY.items():
        assert test is None or re.search(rf"\b{page.removesuffix('.md')}\b", (ROOT / "tests" / test).read_text()), page


# Who reads the blocks of a page in a language that is no command's: this module, another, or nobody (None).
READ_BY = {
    ("asking.md", "toml"): "e2e/test_pages.py",
    ("calibrating.md", "json"): "e2e/test_pages.py",
    ("calibrating.md", "toml"): "e2e/test_pages.py",
    ("how-to.md", "python"): "verl/test_how_to_page.py",
    ("how-to.md", "toml"): "e2e/test_pages.py",
    ("judging.md", "toml"): "e2e/test_pages.py",
    ("mapping.md", "toml"): "unit/ingest/test_mapped.py",
    ("operating.md", "dockerfile"): None,  # it takes minutes and a network
    ("operating.md", "ini"): "e2e/test_operating_page.py",
    ("operating.md", "nginx"): "e2e/test_operating_page.py",
    ("operating.md", "yaml"): "e2e/test_postgres.py",
    ("python.md", "python"): "e2e/test_newcomer.py",
    ("ray.md", "python"): "e2e/test_on_ray.py",
    ("reviewing.md", "json"): "unit/review/test_reviewing_page.py",
    ("settings.md", "toml"): "e2e/test_newcomer.py",
    ("training.md", "toml"): "e2e/test_pages.py",
}
INDENTED = re.compile(r"((?:^    \S.*\n(?:^(?:    .*)?\n)*)+)", re.MULTILINE)


def indented(page: str, begins: str) -> list[str]:
    found = (dedent(block) for block in INDENTED.findall((DOCS / page).read_text(encoding="utf-8")))
    return [block for block in found if block.startswith(begins)]


def test_settings_and_profiles_of_the_pages_are_read_by_a_home(tmp_path: Path):
    names = ("asking.md", "calibrating.md", "how-to.md", "judging.md")
    fenced = [(page, block) for page in names for block in blocks(page, "toml")]
    fenced += [("rewriting.md", block) for block in indented("rewriting.md", "[")]
    assert len(fenced) == 10
    for page, block in fenced:
        if re.search(r"^(model|base_url) = ", block, re.MULTILINE):
            (tmp_path / "profiles.toml").write_text(block, encoding="utf-8")
            assert {*tomllib.loads(block)} <= {*profiles(tmp_path / "profiles.toml")}, page
        else:
            (tmp_path / "gongqing.toml").write_text(block, encoding="utf-8")
            assert load(tmp_path).model_dump() != Settings().model_dump(), page


def test_the_experiment_of_the_page_is_one(tmp_path: Path):
    (tmp_path / "ablations.toml").write_text(*blocks("training.md", "toml"), encoding="utf-8")
    assert len(read_experiment(tmp_path / "ablations.toml").ablations) == 2


def test_the_python_of_calibrating_runs():
    [code] = indented("calibrating.md", "from ")
    ran = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=ROOT, **PIPES)
    assert ran.returncode == 0, ran.stdout
