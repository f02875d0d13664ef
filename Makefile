# Everything starts here: make demo, make test. Only Python ≥ 3.11 and make are assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The environment is made anew in place when a pin changes.
STAMP := $(VENV)/.installed
ENCODER := $(VENV)/.encoder
DOCS := $(VENV)/.docs
# verl and torch live apart (docs/training.md).
TRAIN := .venv-train
TRAIN_STAMP := $(TRAIN)/.installed
# So does Potato, which a team labels with (docs/reviewing.md).
REVIEW := .venv-review
LABEL_STUDIO := .venv-label-studio
LABEL_STUDIO_STAMP := $(LABEL_STUDIO)/.installed
REVIEW_STAMP := $(REVIEW)/.installed

VERL_PYTHON = $(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' || \
	{ echo "verl needs Python 3.11 or 3.12; name one: make PYTHON=python3.12 …" >&2; exit 2; }

BENCHMARKS := refresh release store crawl cleaning near_duplicates llm rewards
PEERS := text-dedup datatrove data-juicer

.PHONY: demo train-env train-env-gpu review review-env label-studio label-studio-env test test-all drill coverage docs notebook ui lint format bench bench-peers pins clean help

help:  ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

$(STAMP): requirements/base.txt requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; name one: make PYTHON=python3.12 …" >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# torch is large: only what needs it installs it.
$(ENCODER): requirements/encoder.txt $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r $< -c requirements/dev.txt
	@touch $@

$(DOCS): requirements/docs.txt $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r $< -c requirements/dev.txt
	@touch $@

docs: $(DOCS)  ## the site of the documentation, in site/, with the notebooks run over the home where it has tables
	$(BIN)/python -m tools.docs_site
	$(BIN)/mkdocs build --quiet

notebook: $(DOCS)  ## the notebooks in JupyterLab, over the home
	$(BIN)/jupyter lab --notebook-dir=notebooks $(ARGS)

demo: $(STAMP)  ## the main job on samples/
	$(BIN)/gongqing demo

$(TRAIN_STAMP): requirements/train.txt
	@$(VERL_PYTHON)
	@test -x $(TRAIN)/bin/python || $(PYTHON) -m venv $(TRAIN)
	$(TRAIN)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

train-env: $(TRAIN_STAMP)  ## the environment that verl trains in, on a CPU

# In the same place, for runs look nowhere else; what is of the CPU's alone would be another torch. Its stamp is the
# CPU's, so that `make test-all` leaves it as it is.
train-env-gpu: requirements/train-gpu.txt  ## the same with vLLM, for GPUs
	@$(VERL_PYTHON)
	rm -rf $(TRAIN) && $(PYTHON) -m venv $(TRAIN)
	$(TRAIN)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $(TRAIN_STAMP)

$(REVIEW_STAMP): requirements/review.txt
	@test -x $(REVIEW)/bin/python || $(PYTHON) -m venv $(REVIEW)
	$(REVIEW)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

review-env: $(REVIEW_STAMP)  ## the environment of Potato, which a team labels with

review: $(STAMP) $(REVIEW_STAMP)  ## serve what was pushed for people to label, on 127.0.0.1, until Ctrl-C
	$(BIN)/python -m pipelines.review.potato_server $(ARGS)

$(LABEL_STUDIO_STAMP): requirements/label-studio.txt
	@test -x $(LABEL_STUDIO)/bin/python || $(PYTHON) -m venv $(LABEL_STUDIO)
	$(LABEL_STUDIO)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

label-studio-env: $(LABEL_STUDIO_STAMP)  ## the environment of Label Studio, which one person may label with

label-studio: $(STAMP) $(LABEL_STUDIO_STAMP)  ## serve one person's tasks in Label Studio: make label-studio WHO=NAME
	$(BIN)/python -m pipelines.review.label_studio_server "$(WHO)" $(ARGS)

test: $(STAMP)  ## unit and integration: no torch, no browser, no data but our own
	$(BIN)/python -m pytest -n auto --dist loadgroup -m "not corpus and not slow" tests/unit tests/integration $(ARGS)

test-all: $(STAMP) $(ENCODER) $(DOCS) $(TRAIN_STAMP) $(REVIEW_STAMP) $(LABEL_STUDIO_STAMP)  ## every test: kills and full disks, verl, the browser, real data too
	$(BIN)/python -m pytest -n auto --dist loadgroup $(ARGS)

drill: $(STAMP)  ## kills, full disks, hostile data, hosts, sites and pages: a table of what survived
	$(BIN)/python -m pytest -n auto --dist loadgroup -m drill $(ARGS)

coverage: $(STAMP) $(ENCODER) $(DOCS) $(TRAIN_STAMP) $(REVIEW_STAMP)  ## the same, with what no test runs; it takes half as long again
	$(MAKE) test-all ARGS="--cov --cov-report=term:skip-covered $(ARGS)"

ui: $(STAMP)  ## Dagster's web UI, at the address that it prints
	$(BIN)/gongqing ui

lint: $(STAMP)  ## formatting, rules, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)  ## put the code in order
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP)  ## speed and memory beside their peers
	@for name in $(BENCHMARKS); do echo "== $$name"; $(BIN)/python -m benchmarks.$$name || exit 1; done

bench-peers: $(PEERS:%=benchmarks/peers/.venv-%/.installed)  ## the peers of the benchmarks, each in its own environment

# One that cannot be installed leaves the reason behind, and the benchmarks tell it.
benchmarks/peers/.venv-%/.installed: benchmarks/peers/%.txt | $(STAMP)
	@echo "== $*"
	@rm -rf $(@D) && $(BIN)/python -m venv $(@D)
	@if $(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r $< 2>$(@D)/pip.log; then \
		touch $@; \
	else \
		grep '^ERROR' $(@D)/pip.log | head -n 1 | tee $(@D)/why-not.txt; \
	fi

pins:  ## resolve the requirements anew
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-annotate --no-header --upgrade \
		-c requirements/constraints.in pyproject.toml -o requirements/base.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-annotate --no-header --extra dev \
		-c requirements/base.txt pyproject.toml -o requirements/dev.txt
	@for name in train train-gpu; do \
		$(BIN)/uv pip compile --quiet --python-platform x86_64-manylinux_2_28 --python-version 3.11 --no-annotate \
			--no-header --upgrade requirements/$$name.in -o requirements/$$name.txt || exit 1; \
	done
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-annotate --no-header --upgrade \
		requirements/review.in -o requirements/review.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-annotate --no-header --upgrade \
		requirements/label-studio.in -o requirements/label-studio.txt
	@# torch of a CPU needs none of what torch names for a GPU
	sed -i -E '/^(nvidia-|cuda-|triton=)/d' requirements/train.txt

clean:  ## throw the environment away; data stay
	rm -rf $(VENV) $(TRAIN) $(REVIEW) $(LABEL_STUDIO) benchmarks/peers/.venv-* .pytest_cache .mypy_cache .ruff_cache .hypothesis
