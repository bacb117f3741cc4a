# Tests. Each room adds its own block below: a cmocka program per module, linked with the room's
# archive. They are begun in this order. The blocks with tests that take long come first, so that
# with `make -j2 check` none of them is left alone at the end.
TEST_LDADD = $(CMOCKA_LIBS)
include tests/device.mk
include tests/reference.mk
include tests/cuda.mk
include tests/passes.mk
include tests/process.mk
include tests/attack.mk
include tests/service.mk
include tests/frontend.mk
include tests/gate.mk
include tests/exec.mk
include tests/textures.mk
include tests/modules.mk
include tests/toolkit12.mk
include tests/sim.mk
include tests/fuzz.mk
include tests/base.mk
include tests/ptx.mk
include tests/softdev.mk
include tests/backend.mk
include tests/coverage.mk
include tests/models.mk
include tests/policy.mk
include tests/slurm.mk
include tests/lint.mk
# All, and the programs that `make check` builds before it runs tests.
.PHONY: test-programs
test-programs: all
	$(MAKE) $(AM_MAKEFLAGS) $(check_PROGRAMS)
