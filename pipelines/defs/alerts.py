"""Somebody is told of what fails: runs and checks in Dagster, and what the home itself shows.

A look is the same from the sensor, while the web UI is up, and from `gongqing alerts`, for a timer of the machine. What
was looked at is written in the home, not in a cursor of Dagster's: both go on where the other was.
"""

import datetime as dt
from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path

import dagster as dg
from dagster._core.scheduler.instigation import TickStatus

from pipelines.core.home import Home
from pipelines.defs.allowance import allowed_today, cap
from pipelines.defs.running import close_killed
from pipelines.errors import GongqingError
from pipelines.operations.alerts.causes import NEARLY, Cause, digest, standing_causes
from pipelines.operations.alerts.sending import OVERLAP, RECEIVERS, Sender, receivers, send
from pipelines.settings import Llm, Settings, home, load

_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE]
_AT_ONCE = 200  # runs and ticks a look
_Happened = tuple[dt.datetime, str, Iterable[Cause]]


def look(folder: Path, instance: dg.DagsterInstance, now: dt.datetime | None = None) -> int:
    """Tells the receivers of what has happened and what stands; returns how many messages went out.

    Raises GongqingError where one of several receivers did not take a message, or none did: what nobody took is told at
    the next look.
    """
    now = now or dt.datetime.now(dt.UTC)
    read, addresses, refused = _settings(folder), receivers(), set[str]()
    settings = read if isinstance(read, Settings) else None
    times = (settings or Settings.model_construct()).alerts
    close_killed(folder, instance)
    with Home(folder).lock("alerts"):
        sender = Sender(
            folder,
            now,
            dt.timedelta(minutes=times.window),
            lambda title, text: refused.update(send(addresses, title, text)),
        )
        happened = sorted([*_ended_runs(instance, sender), *_failed_ticks(instance, sender)], key=itemgetter(0))
        for at, name, causes in happened[:_AT_ONCE]:
            sender.look_at(name, at, causes)
        sender.flush()
        more = iter([read]) if isinstance(read, Cause) else _allowance(folder, read.llm)
        sender.stand(standing_causes(folder, settings, now, {"allowance": lambda: more}))
        sender.daily(times.digest_hour, lambda: digest(folder, settings, now))
    if refused:
        kinds = ", ".join(sorted(refused))
        raise GongqingError(f"a receiver did not take a message ({kinds}); the others did", hint=f"look at {RECEIVERS}")
    return sender.sent


def _settings(folder: Path) -> Settings | Cause:
    """The settings, or that they cannot be read: the schedules wait then, and that is what somebody has to know."""
    try:
        return load(folder)
    except GongqingError as error:
        title = "the settings cannot be read: no schedule runs"
        return Cause("settings", title, f"{error.where}; gongqing doctor says what is wrong")


def _ended_runs(instance: dg.DagsterInstance, sender: Sender) -> Iterator[_Happened]:
    """Runs that have ended since the last look."""
    since = dg.RunsFilter(statuses=_ENDED, updated_after=sender.state.cursor - OVERLAP)
    for record in instance.get_run_records(since, order_by="update_timestamp", ascending=True):
        run = record.dagster_run
        if sender.is_new(run.run_id, record.update_timestamp):
            yield record.update_timestamp, run.run_id, _of_run(instance, run)


def _failed_ticks(instance: dg.DagsterInstance, sender: Sender) -> Iterator[_Happened]:
    """Ticks of schedules and sensors that failed since the last look; not our own: what it could not tell, it tells at
    the next look.
    """
    since = (sender.state.cursor - OVERLAP).timestamp()
    for state in instance.all_instigator_state():
        if state.instigator_name == alerts.name:
            continue
        ticks = instance.get_ticks(
            state.instigator_origin_id, state.selector_id, after=since, statuses=[TickStatus.FAILURE]
        )
        for tick in ticks:
            at, kind = dt.datetime.fromtimestamp(tick.timestamp, dt.UTC), state.instigator_type.value.lower()
            if sender.is_new(name := f"tick {tick.tick_id}", at):
                title = f"the {kind} {state.instigator_name} failed: it has started nothing"
                yield at, name, [Cause(f"tick {state.instigator_name}", title, "gongqing ui shows why")]


def _of_run(instance: dg.DagsterInstance, run: dg.DagsterRun) -> Iterator[Cause]:
    """A run that failed, and checks of it that did not pass. Names alone: an error may quote what people wrote."""
    where = f"run {run.run_id}; gongqing ui shows it"
    command = run.tags.get("gongqing/command", run.job_name)
    if run.status == dg.DagsterRunStatus.FAILURE:
        failed = instance.get_records_for_run(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE).records
        steps = sorted({str(record.event_log_entry.step_key) for record in failed})
        names = f" at {', '.join(steps)}" if steps else ""
        yield Cause(f"{command} failed{names}", f"{command} failed{names}", where)
    checks = instance.get_records_for_run(run.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION).records
    for record in checks:
        event = record.event_log_entry.dagster_event
        assert event is not None
        result = event.asset_check_evaluation_data
        if not result.passed:
            name = f"{result.asset_key.to_user_string()}: {result.check_name}"
            yield Cause(f"check {name}", f"a check did not pass ({result.severity.value}): {name}", where)


def _allowance(folder: Path, llm: Llm) -> Iterator[Cause]:
    """What all runs of Dagster may spend in a day."""
    most, allowed = cap(llm), allowed_today(folder)
    if most and float(allowed) >= NEARLY * float(most):
        hint = "daily_budget under [llm] in gongqing.toml"
        share = f"{allowed.normalize():f} of {most.normalize():f}"
        yield Cause("allowance", f"runs in Dagster may have spent {share} that a day allows", hint)


@dg.sensor(
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING if receivers() else dg.DefaultSensorStatus.STOPPED,
)
def alerts(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Failed runs, checks that did not pass, and what the home shows, to those whom GONGQING_RECEIVERS names. On where
    it names somebody.
    """
    if not receivers():
        return dg.SkipReason(f"nobody is told: {RECEIVERS} names nobody (docs/alerts.md)")
    return dg.SkipReason(f"{look(home(), context.instance)} messages")


sensors = [alerts]
