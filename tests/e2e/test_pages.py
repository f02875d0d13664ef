"""Every command of every page is run: a page is one session, on a home with a release, a vendor of models and a hub on
this machine. What is the reader's own (a file, a row, a name) has a stand-in; what does not run here is named with the
test that runs it, and the words by which it does.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from filled_sheet import opened
from labels_made import LABELLED_TOML
from message_receiver import Receiver
from pages import PAGES, blocks, commands, indented
from reviewed import ANSWERS, label, lines, read_tasks
from spreadsheet import workbook
from typer.testing import CliRunner
from vendor_profile import PROFILE
from web_ui import free_port

from pipelines.cli import app
from pipelines.llm.profiles import profiles
from pipelines.settings import ROOT
from pipelines.store import Store
from tests.doubles.hub import Hub
from tests.doubles.vendor import Vendor

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

# Who runs a command that does not run here, by what it begins with: a test, and the words in it.
ELSEWHERE = {
    r"gongqing (train mine|show rollouts)": ("verl/test_how_to_page.py", "(train mine .*|show rollouts"),
    r"gongqing train mindchat_ecot(?!.*--dry-run)": ("verl/test_mindchat_run.py", '"train", RECIPE'),
    r"gongqing train empathy_coe": ("verl/test_empathy_run.py", 'dg.AssetKey("train_empathy_coe")'),
    r"gongqing train empathy_sft": ("verl/conftest.py", 'trained(training_home, "empathy_sft"'),
    r"gongqing train (unifireward|empathy_encoder)|gongqing experiment": (
        "doubles/train_env.py",
        'start_command(home, "experiment"',
    ),
    r"gongqing train compeer_sft": ("verl/test_compeer_run.py", '"compeer_sft"'),
    r"gongqing train compeer_cer": ("verl/test_compeer_run.py", '"train", "compeer_cer"'),
    # As unifireward's: what is another are their rows.
    r"gongqing train compeer_[po]rm": ("verl/test_rows_of_ablations.py", '"compeer_prm", "compeer_orm"'),
    r"gongqing crawl (xinli001|our_forum)": ("e2e/test_crawl_command.py", '"crawl", "xinli001"'),  # where no site is
    r"gongqing evaluate \w+ --suite (sage|automatic|judge)": ("crash/test_benchmark_kills.py", '"--suite", "sage"'),
    r"gongqing evaluate \w+ --suite reward_model": ("verl/test_evaluated_runs.py", 'suites=("reward_model",)'),
    r"gongqing evaluate report": ("integration/evaluate/test_evaluations.py", '["evaluate", "report"'),
    r"inspect eval": ("integration/evaluate/test_benchmarks.py", 'commands("evaluating.md")'),
    r"python -m pipelines.judge.service": ("doubles/judge_process.py", "pipelines.judge.service"),
    r"python -m pipelines.train": ("verl/test_contrastive.py", "pipelines.train.contrastive"),
    r"gongqing refresh --engine ray": ("integration/test_making.py", '"--engine", "ray"'),
    r"gongqing ledger (give-up-batch|close-budget)": ("integration/test_cli.py", '"give-up-batch", str('),
    r"make demo": ("e2e/test_newcomer.py", '"make", "demo"'),
    r"make drill": ("e2e/test_newcomer.py", '"make", "drill"'),
    r"make train-env$": ("../.ci/run", "train-env"),
    r"systemctl|rsync|cp|sudo": ("e2e/test_operating_page.py", "{UPDATE}"),
}
# What no test runs, and why.
NOT_RUN = {
    r"ray start|GONGQING_RAY_ADDRESS": "several machines",
    r"make train-env-gpu|vllm|.*/models/": "a GPU, and a model",
    r".*\bpip |.*\bhf |python3.11 -m venv|touch|export HF_HUB_OFFLINE": "a machine that fetches",
}
# Pages on whose home models are asked.
ASKED = {"asking.md", "how-to.md"}
# Pages whose commands other tests run, as sessions too.
WHOLE_PAGES = {"index.md", "using.md", "operating.md"}


PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}


def run_here(page: str) -> list[str]:
    return [one for one in commands(page) if not any(re.match(pattern, one) for pattern in (*ELSEWHERE, *NOT_RUN))]


class Reader:
    """Somebody at a terminal: a folder with a few files, a home, what was exported. `gongqing` runs in this process."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.home = folder, home
        self.environment = {"GONGQING_HOME": str(home), "GONGQING_AUTHOR_KEY": "a-secret-of-at-least-16-bytes"}
        self.environment |= {
            "DASHSCOPE_API_KEY": "a key that is sent nowhere",
            "GONGQING_CRAWL_CONTACT": "me@example.org",
        }
        self.background: list[subprocess.Popen[str]] = []

    def run(self, command: str) -> str:
        """What a command that succeeds prints."""
        words = shlex.split(command)
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            self.environment[name] = value
            return ""
        if not words[0].endswith("gongqing"):  # also where the client of the Hub reads its address, which it does once
            return self._run_apart(command)
        ran = CliRunner().invoke(app, words[1:], env=self.environment)
        assert ran.exit_code == 0, f"{command}\n{ran.output}\n{ran.exception!r}"
        self._answer(ran.output)
        return ran.output

    def _run_apart(self, command: str) -> str:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        how: Any = {"shell": True, "cwd": ROOT, "env": {**os.environ, **self.environment, "PATH": path}, **PIPES}
        if "samples.replica" in command:  # it serves until it is stopped
            self.background.append(process := subprocess.Popen(f"exec {command}", **how))
            assert process.stdout is not None
            return process.stdout.readline()  # two lines are all that it says
        ran = subprocess.run(command, **how)
        assert ran.returncode == 0, f"{command}\n{ran.stdout}"
        return ran.stdout

    def leave(self) -> None:
        for process in self.background:
            process.terminate()
            process.communicate()

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
) -> Iterator[Reader]:
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
    yield (reader := Reader(folder, home))
    reader.leave()


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
    "crawling.md": {
        "--port 8765": "--port {port} --crawl-delay 0",
        "--until 2025-05-19": "--until 2025-05-19 --base-url http://127.0.0.1:{port}",
        "http://127.0.0.1:8765": "http://127.0.0.1:{port}",
        "-O posts.jsonl": "-O {other}/posts.jsonl",
    },
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
    own |= {"hub": hub.url, "token": hub.token, "other": str(tmp_path / "other"), "port": str(free_port())}
    for command in run_here(page):
        own_words = command
        for old, new in STAND_INS.get(page, {}).items():
            own_words = own_words.replace(old, new.format_map(own))
        reader.run(own_words)


def test_what_another_test_runs_stands_in_that_test():
    left = {command for page in PAGES for command in commands(page)}
    for pattern in (*ELSEWHERE, *NOT_RUN):
        assert any(re.match(pattern, command) for command in left), pattern
    for test, words in ELSEWHERE.values():
        assert words in (ROOT / "tests" / test).read_text(encoding="utf-8"), test


def test_the_python_of_calibrating_runs():
    [code] = indented("calibrating.md", "from ")
    ran = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=ROOT, **PIPES)
    assert ran.returncode == 0, ran.stdout
