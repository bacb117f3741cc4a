# make lint: layers, figures of the house, formatting, cppcheck, clang-tidy. Sources are those of
# git, or of the tarball.
EXTRA_DIST += tests/check_layers.sh .clang-format .clang-tidy .editorconfig dev quickstart \
	CONTRIBUTING.md .ci/run tests/README.md
EXTRA_DIST += tools/README.md tools/house.py tools/house_text.py tools/house_objects.py \
	tools/house_test.py tools/house.limits tools/circles.py
dist_check_SCRIPTS += tests/house.sh
TESTS += tests/house.sh
LINT_DIRS = base protocol ptx models policy templates device backend frontend cli papers
.PHONY: lint lint-format lint-tidy lint-cppcheck lint-layers lint-house
lint: lint-layers lint-house lint-format lint-cppcheck lint-tidy
lint-layers:
	@srcdir=$(top_srcdir) $(top_srcdir)/tests/check_layers.sh && echo "lint: layers are clean"
# Who calls whom is read from the object files, so all is built first.
lint-house: all
	@if command -v python3 >/dev/null; then \
	  python3 $(top_srcdir)/tools/house.py --build $(abs_top_builddir) && echo "lint: the house is in order"; \
	else echo "lint: the house is not measured: python3 is missing"; fi
lint-format:
	@cd $(top_srcdir) && find $(LINT_DIRS) tests bench demo \( -name '*.c' -o -name '*.h' \) -print0 | \
	  xargs -0 clang-format --dry-run -Werror 2>&1 | head -n 40 | { ! grep . ; } && echo "lint: format is clean"
# Of the interpreter's vector cores one is looked at: their source is the same.
LINT_TWINS = device/soft/exec/avx2.c device/soft/exec/avx512.c
# Left out: the generated header's version test (cppcheck does not see protobuf-c's headers), and
# where a loop over lanes or libzmq sets what cppcheck thinks unset.
lint-cppcheck: $(BUILT_SOURCES)
	@cd $(top_srcdir) && cppcheck -q -j2 --std=c11 --error-exitcode=1 --inline-suppr --max-configs=1 \
	  --enable=warning,portability --suppress=missingInclude --suppress=unknownMacro --suppress=nullPointerRedundantCheck \
	  --suppress=preprocessorErrorDirective:*pb-c.h --suppress=invalidPointerCast:device/soft/exec/core.inc \
	  --suppress=uninitvar:device/soft/exec/core.inc --suppress=uninitvar:device/soft/exec/mem.inc \
	  --suppress=legacyUninitvar:device/soft/exec/tex.inc --suppress=uninitvar:backend/process/loop.c --suppress=shiftTooManyBitsSigned -D_GNU_SOURCE -I. -I$(abs_top_builddir) $(LINT_TWINS:%=-i%) $(LINT_DIRS) && echo "lint: cppcheck is clean"
# How far the analyzer goes into each function: LINT_NODES=225000 is clang's own limit, and takes
# eight times as long.
LINT_NODES = 20000
lint-tidy: $(BUILT_SOURCES)
	@cd $(top_srcdir) && find $(LINT_DIRS) -name '*.c' $(LINT_TWINS:%=! -path %) -print0 | xargs -0 -n 4 -P 2 sh -c \
	  'clang-tidy --quiet "$$@" -- -Xclang -analyzer-config -Xclang max-nodes=$(LINT_NODES) -std=gnu11 -D_GNU_SOURCE -I. -I$(abs_top_builddir) -DSBINDIR=\"\" -DWSLIBDIR=\"\" -DBINDIR=\"\" -DSYSCONFDIR=\"\" -DWS_SBINDIR=\"\" -DWS_PKGLIBEXECDIR=\"\" 2>/dev/null' sh && echo "lint: clang-tidy is clean"

# distcheck compares the tarball with git: what no test reads can be missing without any test that
# fails.
distcheck-hook:
	@cd $(top_srcdir) && git ls-files 2>/dev/null | grep -vxF .gitignore | while read -r f; do \
	  [ -e "$(abs_top_builddir)/$(distdir)/$$f" ] || echo "not in the tarball: $$f"; done | { ! grep . ; }
.PHONY: distcheck-hook
# CI has run all tests in its own tree. Of those in the tarball it runs these, which read most kinds
# of files there, and builds no programs but theirs.
DISTCHECK_SHORT_TESTS = tests/process/clients.sh tests/process/cli.sh tests/process/verbs.sh \
	tests/process/examples.sh tests/unit/ptx/test_fixtures
DISTCHECK_SHORT_BUILT = tests/cuda/libcuda_stub.so tests/cuda/drv_ptxas tests/cuda/drv_texref \
	$(CUDA_CLIENTS) tests/unit/ptx/test_fixtures
.PHONY: distcheck-short
distcheck-short:
	$(MAKE) $(AM_MAKEFLAGS) distcheck TESTS='$(DISTCHECK_SHORT_TESTS)' \
	  check_PROGRAMS='$(DISTCHECK_SHORT_BUILT)'
