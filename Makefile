# Needs a Python of 3.11 or later and make; everything else is made here, in .venv.

PYTHON ?= python3
VENV   := .venv
RIVALS := .venv-rivals
RUN    := $(VENV)/bin/python
WITH   ?=
# Extras of pyproject.toml. In variables, because a comma written inside $(call ...) would end an argument.
EXTRAS        := dev,plot
PINNED_EXTRAS := $(EXTRAS),docs
RIVALS_EXTRAS := test,rivals
BENCHES = $(patsubst bench/%.py,bench.%,$(wildcard bench/[!_]*.py))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test test-fast test-rivals lint format docs bench bench-rivals pins clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  PYTHON=python3.12 picks the Python that .venv is made of (after make clean)."

demo: $(VENV)/.ready ## the main job, on invented data: the two-minute tour
	@$(VENV)/bin/discreet demo

test: $(VENV)/.ready ## every test that needs no server, Java or rival (WITH="server java" adds those)
	@$(RUN) -m pytest -q -n auto $(WITH:%=--with=%)

test-fast: $(VENV)/.ready ## the same without the tests over ten seconds
	@$(RUN) -m pytest -q -n auto --without=slow

test-rivals: $(RIVALS)/.ready ## the tests that compare with rival libraries
	@$(RIVALS)/bin/python -m pytest -q --with=rivals -m rivals tests

lint: $(VENV)/.ready ## formatting, lint and strict types
	@$(RUN) -m ruff format --check
	@$(RUN) -m ruff check
	@$(RUN) -m mypy

format: $(VENV)/.ready ## rewrite the code as `make lint` wants it
	@$(RUN) -m ruff format
	@$(RUN) -m ruff check --fix

docs: $(VENV)/.ready-docs ## the site, in site/; a warning is an error
	@NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --quiet --strict --clean
	@echo "the site is in site/index.html"

bench: $(VENV)/.ready ## every benchmark, without rivals
	@status=0; for b in $(BENCHES); do $(RUN) -m $$b || status=1; done; exit $$status

bench-rivals: $(RIVALS)/.ready ## every benchmark, side by side with rivals
	@status=0; for b in $(BENCHES); do $(RIVALS)/bin/python -m $$b || status=1; done; exit $$status

setup: $(VENV)/.ready ## only make .venv

clean: ## remove all that make made
	rm -rf $(VENV) $(RIVALS) site dist build .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- the environments ----------------------------------------------------------------------------
# A stamp file says that an environment holds what pyproject.toml and its constraints ask for. When one of
# those changes it is made anew, so that nothing lingers in it that a fresh machine would not have.

export PIP_DISABLE_PIP_VERSION_CHECK := 1

# $(call make_venv,folder): says plainly what is missing, because Debian's Python comes without venv.
define make_venv
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	echo "discreet needs Python 3.11 or later, and '$(PYTHON)' is missing or older." >&2; \
	echo "Install one, or name it: make PYTHON=/path/to/python3.12" >&2; exit 1; }
@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	echo "'$(PYTHON)' cannot make virtual environments." >&2; \
	echo "On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
@echo "making $(1) (under a minute, once)"
@$(PYTHON) -m venv --clear $(1)
endef

# $(call pip_install,folder,constraints,extras): environment variables rather than -c, because those also reach the
# environment in which discreet itself is built; newer pips read the second name for that.
define pip_install
@PIP_CONSTRAINT=$(2) PIP_BUILD_CONSTRAINT=$(2) $(1)/bin/python -m pip install --quiet -e '.[$(3)]'
endef

$(VENV)/.ready: pyproject.toml constraints.txt
	$(call make_venv,$(VENV))
	$(call pip_install,$(VENV),constraints.txt,$(EXTRAS))
	@touch $@

$(VENV)/.ready-docs: $(VENV)/.ready
	$(call pip_install,$(VENV),constraints.txt,docs)
	@touch $@

$(RIVALS)/.ready: pyproject.toml constraints-rivals.txt
	$(call make_venv,$(RIVALS))
	$(call pip_install,$(RIVALS),constraints-rivals.txt,$(RIVALS_EXTRAS))
	@touch $@

# $(call pin,constraints,extras): the newest versions that pyproject.toml allows, written down.
define pin
$(call make_venv,.venv-pins)
@.venv-pins/bin/python -m pip install --quiet hatchling editables -e '.[$(2)]'
@{ echo "# Exact versions of everything that $(3) holds. Written by: make pins"; \
   .venv-pins/bin/python -m pip freeze --exclude-editable; } > $(1)
@rm -rf .venv-pins
endef

pins: ## move every pinned version to the newest that pyproject.toml allows
	$(call pin,constraints.txt,$(PINNED_EXTRAS),.venv)
	$(call pin,constraints-rivals.txt,$(RIVALS_EXTRAS),.venv-rivals)
