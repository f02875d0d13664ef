"""Settings: defaults here, `gongqing.toml` of the home over them, `GONGQING_*` of the environment over both.

Closed: a key that does not exist is an error that names the nearest one. A nested key is written
`GONGQING_SAMPLING__N_SAMPLES` in the environment and `n_samples` under `[sampling]` in the file.
"""

import difflib
import os
import secrets
import tomllib
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, InitSettingsSource, SettingsConfigDict
from pydantic_settings import SettingsError as SourceError

from pipelines.errors import SettingsError
from schemas.labels import FLOORS, JUDGED

ROOT = Path(__file__).resolve().parent.parent
PREFIX = "GONGQING_"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _whole(size: Any) -> Any:
    if isinstance(size, float) and size >= 1:
        raise ValueError("a share lies below 1, and a number of rows is written without a point")
    return size


def _known(provider: Any) -> Any:
    if provider == "rules":
        raise ValueError("there is no provider 'rules' any more: nothing pretends to be a model; leave it out")
    return provider


def _flattened(values: Any, *, what: str, known: Collection[str]) -> Any:
    """`{"risk": {"any": {"recall": 0.9}}}`, which TOML makes of a key without quotation marks, as `risk.any.recall`."""
    if not isinstance(values, dict):
        return values
    flat = dict(_flat(values))
    for name in flat:
        if name not in known:
            raise ValueError(f"there is no {what} {name!r}, did you mean {_nearest(name, known)!r}?")
    return flat


def _flat(values: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, (*path, key))
        else:
            yield ".".join((*path, key)), value


def _nearest(name: str, known: Collection[str]) -> str:
    return difflib.get_close_matches(name, list(known), n=1, cutoff=0.0)[0]


Share = Annotated[float, Field(gt=0, lt=1)]
Count = Annotated[int, Field(ge=0)]
Size = Annotated[Share | Count, BeforeValidator(_whole)]


class Filters(_Section):
    """The first filters. M §2 and E §2 give the two least lengths; the greatest and the share are ours."""

    min_post_chars: Count = 20
    # Of a post, of one answer, of one turn. The longest real post that we have seen has 7,070 characters, the longest
    # answer 1,936, the longest text that a page of a forum showed as one piece 12,857: none of them falls.
    max_post_chars: int = Field(20_000, ge=1)
    max_dialogue_chars: int = Field(200_000, ge=1)  # of all turns of a dialogue; an hour of talk has some 50,000
    min_answer_chars: Count = 100  # an answer must have more
    min_han_ratio: float = Field(0.5, ge=0, le=1)
    # Ours: of 4,401 real posts of a forum 64 fall, scored by models that had not seen them; 63 of these tell of no
    # trouble. At 0.62 still 97 % of the others would stay, and a third of what falls would be theirs.
    min_emotional_context: float = Field(0.08, ge=0, le=1)


class Cleaning(_Section):
    """What is taken out of every text. Personal data always are; M cleans by `paper`."""

    profile: Literal["default", "paper"] = "default"  # paper: all that is not Chinese goes
    # How names, schools, employers, hospitals and addresses are looked for; what goes to the Hub is read `wide`, too.
    names: Literal["strict", "wide", "none"] = "strict"
    ner: Path | None = None  # a folder with a model for token classification, which looks for them beside the rules


class Crawl(_Section):
    """How sites are crawled. What is asked of one site stands in its file, crawlers/sites/*.toml."""

    contact: str | None = None  # an address for the sites' owners, in the user agent: no site is crawled without
    revisit_days: int = Field(3, ge=1)  # how many days back the schedule looks for late answers
    keep_pages_days: int = Field(7, ge=0)  # how long raw pages stay
    missing_share: float = Field(0.2, ge=0, le=1)  # of what pages state, so much may be missing from a crawl: ours


class SplitSizes(_Section):
    """How much of the new groups goes where: a share below 1, or a number of rows. The rest trains."""

    validation: Size = 0.1
    test: Size = 0.1

    @model_validator(mode="after")
    def _leaves_something_to_train(self) -> Self:
        if isinstance(self.validation, float) and isinstance(self.test, float) and self.validation + self.test >= 1:
            raise ValueError("validation and test leave nothing to train")
        return self


class PostSizes(SplitSizes):
    """Sizes of posts. A source may have its own (E: test = 2000 of each of two); what it leaves out is common."""

    sources: dict[str, SplitSizes] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _as_the_others(cls, values: Any) -> Any:
        if not isinstance(values, dict) or not isinstance(sources := values.get("sources"), dict):
            return values
        common = {key: values[key] for key in SplitSizes.model_fields if key in values}
        whole = {name: {**common, **own} if isinstance(own, dict) else own for name, own in sources.items()}
        return {**values, "sources": whole}


class Splits(_Section):
    """Sizes by what a group holds: posts (M: test = 500) or dialogues alone."""

    posts: PostSizes = PostSizes()
    dialogues: SplitSizes = SplitSizes()


class Sampling(_Section):
    """C eq. 1. `n_samples` is not given in the paper: ours."""

    n_samples: int = Field(3, ge=1)
    centred: bool = False  # μ = (N_r + 1)/2 instead of the paper's N_r/2
    # Of which dialogues the prompts of `grpo_cer` are: as they were (none), and C's rewritings where there are any.
    variants: tuple[Literal["none", "D", "R", "P"], ...] = Field(("none", "P"), min_length=1)


class Prompts(_Section):
    """How long a prompt may be. 1024 is M's and E's; C gives none, and its histories are longer: ours."""

    max_tokens: int = Field(1024, ge=1)
    max_tokens_cer: int = Field(2048, ge=1)
    tokenizer: Path | None = None  # folder of a Hugging Face tokenizer; without it characters are counted
    allow_risk: bool = False  # whether posts and dialogues with signs of risk may train
    # What becomes of a round with clips: it is read by its text, as C evaluates, or dropped. It is dropped in any case
    # where its source says that text does not do.
    media: Literal["text", "drop"] = "text"


class Llm(_Section):
    """How models are asked. What is asked of which follows from the content's key alone, so these decide no content."""

    # None: who made the tables; what nobody made yet waits for a model. The presence of a key selects nothing.
    provider: Annotated[Literal["openai", "replay", "written"] | None, BeforeValidator(_known)] = None
    profiles: Path | None = None  # a TOML file of model profiles beside those that are shipped
    recordings: Path | None = None  # of provider `replay`
    repairs: int = Field(1, ge=0)  # how often a model is asked to repair its reply: ours
    attempts: int = Field(6, ge=1)  # how often a request that failed on its way is sent: ours
    timeout: float = Field(600.0, gt=0)  # seconds; a model that reasons may think for minutes
    concurrency: int | None = Field(None, ge=1)  # requests in flight; None: as the profile says
    # A stage stops where more of a model's replies than this share are no answer after all repairs, beyond chance and
    # from the 30th on: ours. Models that can do a task miss its format in a few of a hundred; one in five has not
    # understood it, and a gateway that says "busy" as a completion is at all of them.
    failures: float = Field(0.2, ge=0, le=1)
    schedule_budget: float | None = Field(None, gt=0)  # what one run of the weekly schedule may spend; None: nothing
    # What all runs in Dagster may spend in 24 hours, from the launch pad or a schedule; None: as schedule_budget.
    daily_budget: float | None = Field(None, ge=0)


Room = Annotated[int, Field(ge=1)]


class AnnotateSizes(_Section):
    """How many rows of each table's parent are asked about, drawn by the seed; None: all. A greater number keeps what a
    smaller one has drawn.
    """

    coherent_dialogues: Room | None = None
    topics: Room | None = None
    emotions: Room | None = None
    ecot_chains: Room | None = None
    # Question-answer pairs of train that can be asked about, one answer a question. E: of them 200 were kept by
    # professionals; what hindsight and they refuse is none of the 200, so draw more.
    coe_chains: Room | None = None
    cer_candidates: Room | None = None  # rounds that train
    # Rounds of validation and test: of those that the draw passes on its way so many at most. None: all of these, so
    # that they are as large a part as among all rounds. C held out 574 samples of 11,140 labels.
    cer_candidates_held_out: Annotated[int, Field(ge=0)] | None = None


class RewriteSizes(_Section):
    """As `AnnotateSizes`."""

    disc_profiles: Room | None = None  # dialogues
    rewrite_drafts: Room | None = None  # dialogues and labelled rounds
    rewrite_judgements: Room | None = None


class Annotate(_Section):
    """Which model is asked for what, by the alias of its profile. C's filter and candidates and E's chains are the
    papers'; the others are ours.
    """

    coherence: str = "qwen2.5-72b"  # C
    topics: str = "qwen-plus"
    emotions: str = "qwen-plus"
    coe: str = "deepseek-r1"  # E §3.2
    ecot: str = "deepseek-r1"
    cer: tuple[str, ...] = Field(("gpt-4o", "qwen2.5-vl"), min_length=1)  # C
    human_answers: bool = True  # E: chains lead to the answers of people alone
    sizes: AnnotateSizes = AnnotateSizes()


class Rewrite(_Section):
    """C's rewriting by personality: who is asked (C: GPT-4o profiles, "an LLM" rewrites), and how personas are made."""

    profiling: str = "gpt-4o"  # C
    writing: str = "gpt-4o"
    judging: str = "qwen2.5-72b"
    # What is made of each dialogue: a copy (D), a rewrite without persona (R), with one (P). A dialogue that one of
    # them loses is lost to all, so all have the same number of rows.
    variants: tuple[Literal["D", "R", "P"], ...] = Field(("P",), min_length=1)
    encoder: Path | None = None  # a folder with a sentence-transformers model; None: personas by their scores
    least_similarity: float | None = Field(None, ge=-1, le=1)  # of rewrites, by the encoder: each has its own scale
    max_clusters: int = Field(12, ge=2)  # K is looked for up to here: ours
    drift: float = Field(1.5, gt=1)  # clusters are fitted again where the mean squared error has grown by more: ours
    fit: int = 1  # another number fits them again
    sizes: RewriteSizes = RewriteSizes()

    @model_validator(mode="after")
    def _say_what_is_similar(self) -> "Rewrite":
        if (self.encoder is None) != (self.least_similarity is None):
            raise ValueError("encoder and least_similarity are given together: each model has a scale of its own")
        return self


class Publish(_Section):
    """Where the job `publish_release` may put a release. The command line names its repository itself."""

    repositories: tuple[str, ...] = ()  # OWNER/NAME on the Hub; none: nowhere
    public: tuple[str, ...] = ()  # those of them that everybody may see
    creators: tuple[str, ...] = ()  # whom a card names as those who made the data set, and cites; none: the project

    @model_validator(mode="after")
    def _name_the_public_ones_twice(self) -> Self:
        if missing := sorted(set(self.public) - set(self.repositories)):
            raise ValueError(f"public names what repositories does not: {', '.join(missing)}")
        return self


class Release(_Section):
    """What a release may do without. Ours: more is no accident, and something is wrong with the home."""

    left_out: float = Field(0.01, ge=0, lt=1)  # of its posts and dialogues, where splits leak; five always
    # The least figures of `gongqing calibrate` that it demands, by names of schemas.labels.FLOORS.
    floors: Annotated[
        dict[str, Annotated[float, Field(gt=0, le=1)]],
        BeforeValidator(partial(_flattened, what="figure", known=FLOORS)),
    ] = Field(default_factory=dict)
    # Models that have to pass the test of `gongqing calibrate KIND --judge`, by what they judge: "cer.preference".
    judges: Annotated[dict[str, str], BeforeValidator(partial(_flattened, what="question", known=JUDGED))] = Field(
        default_factory=dict
    )


class Training(_Section):
    """The generic negatives of E's triplets: answers put together from sentences that stand everywhere. All ours."""

    generic_questions: int = Field(3, ge=2)  # a generic sentence stands in answers to so many train questions at least
    generic_share: float = Field(0.0002, ge=0, lt=1)  # and to this share of them
    generic_sentences: int = Field(4, ge=1)  # how many make an answer


class Review(_Section):
    """What people decide."""

    only_reviewed: bool = False  # whether a chain that no professional has reviewed stays out of `sft_coe` (E)


class Alerts(_Section):
    """When somebody is told, by whom GONGQING_RECEIVERS names. All ours."""

    window: float = Field(30.0, gt=0)  # minutes; a run that fails again and again is told once in so many
    stale_hours: float = Field(36.0, gt=0)  # for how long a table may be stale
    digest_hour: int | None = Field(9, ge=0, le=23)  # of the day's news, Shanghai; None: none


class Rewards(_Section):
    """Who judges the outputs of a policy, by the alias of a profile, where a run names a provider with models."""

    mindchat: str = "qwen-plus"  # M's judge
    compeer: str = "unifireward"  # trained and served by you; another judge is another reward
    compeer_process: str = "compeer-prm"  # of the ablation POR, which asks two models: about steps
    compeer_outcome: str = "compeer-orm"  # and about responses
    failures: float = Field(0.05, ge=0, le=1)  # a run stops where more of the judgements than this share fail: ours
    at_once: int = Field(32, ge=1)  # judgements in flight, over all workers of a run: ours
    judge_timeout: float = Field(120.0, gt=0)  # seconds that a call of the judge's may take: ours
    judge_attempts: int = Field(3, ge=1)  # how often a call of its that failed is made: ours


class Storage(_Section):
    """Where tables and releases lie, if not in the home. Keys and endpoint are AWS_* of the environment."""

    url: str | None = Field(None, pattern=r"^s3://[a-z0-9][a-z0-9.-]+(/[A-Za-z0-9._=-]+)*/?$")


# As Dagster has it.
Owner = Annotated[str, Field(pattern=r"^(team:\w+|[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,7})$")]


class Settings(BaseSettings):
    """All settings of a home."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter="__", extra="ignore", frozen=True)

    seed: int = 0
    owners: tuple[Owner, ...] = ()  # whom the web UI names at every table; none: nobody
    filters: Filters = Filters()
    cleaning: Cleaning = Cleaning()
    crawl: Crawl = Crawl()
    splits: Splits = Splits()
    sampling: Sampling = Sampling()
    prompts: Prompts = Prompts()
    llm: Llm = Llm()
    annotate: Annotate = Annotate()
    rewrite: Rewrite = Rewrite()
    release: Release = Release()
    publish: Publish = Publish()
    training: Training = Training()
    review: Review = Review()
    rewards: Rewards = Rewards()
    alerts: Alerts = Alerts()
    storage: Storage = Storage()


# Of the environment alone: where things are, and secrets. They decide no content, so no version depends on them.
ENVIRONMENT_ONLY = ("HOME", "AUTHOR_KEY", "ENGINE", "RAY_ADDRESS", "CRAWL_CONTACT", "RECEIVERS")
AUTHOR_KEY = PREFIX + "AUTHOR_KEY"
ENGINES = ("one", "ray")


def home() -> Path:
    """The folder of data, Dagster's state, the author key and the takedown list (default: the repository)."""
    return Path(os.environ.get(PREFIX + "HOME") or ROOT).expanduser().resolve()


def engine() -> str:
    """Where pieces are made and near-duplicates searched: `one` process (default) or `ray`. Only speed depends on it.

    Raises SettingsError for another name.
    """
    named = os.environ.get(PREFIX + "ENGINE") or ENGINES[0]
    if named not in ENGINES:
        raise SettingsError(
            f"there is no engine {named!r}",
            where=f"the environment variable {PREFIX}ENGINE",
            hint=f"known: {', '.join(ENGINES)}",
        )
    return named


def settings_file(home: Path) -> Path:
    """What the user has set."""
    return home / "gongqing.toml"


def author_key_file(home: Path) -> Path:
    """What pseudonyms are made with, where the environment has no key."""
    return home / "author.key"


def load(home: Path) -> Settings:
    """The settings of a home.

    Raises SettingsError for an unknown key or an impossible value, naming the file or variable and the nearest key.
    """
    path = settings_file(home)
    try:
        written = tomllib.loads(path.read_text(encoding="utf-8-sig")) if path.exists() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"not valid TOML: {error}", where=path, hint="mend the line that is named") from error
    except OSError as error:
        hint = "give it to the user who runs this, as a file that it may read"
        raise SettingsError(f"cannot be read: {error.strerror}", where=path, hint=hint) from error
    _refuse_unknown(written, Settings, str(path), ())
    for variable in os.environ:
        name = variable.upper().removeprefix(PREFIX)  # pydantic-settings knows no case either
        if variable.upper() != name and name not in ENVIRONMENT_ONLY:
            nested: Any = None
            for part in reversed(name.lower().split("__")):
                nested = {part: nested}
            _refuse_unknown(nested, Settings, f"the environment variable {variable}", ())

    class OfThisHome(Settings):
        @classmethod
        def settings_customise_sources(  # type: ignore[override]  # the sources are named by what we use of them
            cls, settings_cls: type[BaseSettings], env_settings: Any, **_: Any
        ) -> tuple[Any, ...]:
            return env_settings, InitSettingsSource(settings_cls, written)

    try:
        return _in(home, OfThisHome())
    except (ValidationError, SourceError) as error:
        key, problem = "", str(error).splitlines()[0]
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"] if isinstance(part, str) and part.isidentifier())
            problem = f"{first['msg']}, not {first['input']!r}"
        raise SettingsError(
            f"the setting {key or 'given'} cannot be: {problem}",
            where=f"{path} or the environment ({PREFIX}{key.upper().replace('.', '__')})",
            hint="correct the value",
        ) from error


def storage_url(home: Path) -> str | None:
    """Where the tables and releases of a home lie, if not in it. Raises SettingsError as `load` does, but for a home
    whose settings do not speak of it: what else is wrong with these makes no table another's.
    """
    try:
        written = settings_file(home).read_bytes()
    except FileNotFoundError:
        written = b""
    except OSError:  # what it says is not known
        return load(home).storage.url
    is_named = any(name.upper().startswith(f"{PREFIX}STORAGE") for name in os.environ)
    return load(home).storage.url if is_named or b"storage" in written else None


def _in(home: Path, settings: Settings) -> Settings:
    """The settings with the files that they name looked for in the home, wherever a command is called."""
    updated = {}
    for section, names in (("llm", ("profiles", "recordings")), ("rewrite", ("encoder",)), ("cleaning", ("ner",))):
        values = getattr(settings, section)
        named = {name: home / path for name in names if (path := getattr(values, name)) is not None}
        updated[section] = values.model_copy(update=named)
    return settings.model_copy(update=updated)


# What somebody may look for, and what it is called; by spelling another is nearer.
_OTHER_NAMES = {"annotate.coe_sample": "annotate.sizes.coe_chains"}


def _refuse_unknown(values: Any, section: type[BaseModel], where: str, path: tuple[str, ...]) -> None:
    if not isinstance(values, dict):
        return
    for key, value in values.items():
        if key not in section.model_fields:
            dotted = ".".join((*path, key))
            known = [*_keys_of(Settings), *_keys_of(section, path)]
            near = [_OTHER_NAMES[dotted]] if dotted in _OTHER_NAMES else []
            near = near or difflib.get_close_matches(dotted, known, n=1, cutoff=0.4)
            near = near or [_nearest(key, section.model_fields)]
            raise SettingsError(f"there is no setting {dotted!r}", where=where, hint=f"did you mean {near[0]!r}?")
        inner = section.model_fields[key].annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            _refuse_unknown(value, inner, where, (*path, key))
        elif get_origin(inner) is dict and isinstance(value, dict):
            of_name = get_args(inner)[1]
            for name, named in value.items() if isinstance(of_name, type) and issubclass(of_name, BaseModel) else ():
                _refuse_unknown(named, of_name, where, (*path, key, name))


def _keys_of(section: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[str]:
    """All keys below a section, with dots."""
    for key, field in section.model_fields.items():
        yield ".".join((*path, key))
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _keys_of(field.annotation, (*path, key))


def author_key(home: Path) -> bytes | None:
    """The key of the authors' pseudonyms: of the environment, or the file `author.key` of the home; None without."""
    if key := os.environ.get(AUTHOR_KEY):
        return key.encode()
    path = author_key_file(home)
    return path.read_bytes().strip() if path.exists() else None


def make_author_key(home: Path) -> None:
    """Make the home's author key once, readable by its owner alone, so that pseudonyms and versions stay."""
    path = author_key_file(home)
    if author_key(home) is None:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32) + "\n")
