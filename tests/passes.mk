# Rewritten kernels: as text, what is refused, and that they compute the same.
check_PROGRAMS += tests/unit/ptx/test_rewrite
tests_unit_ptx_test_rewrite_SOURCES = tests/unit/ptx/test_rewrite.c \
	tests/unit/ptx/rewrite_golden.inc tests/unit/ptx/fence_fuse_golden.inc
tests_unit_ptx_test_rewrite_LDADD = ptx/libptx.a base/libbase.a $(LZ4_LIBS) $(ZSTD_LIBS) $(TEST_LDADD)
dist_check_SCRIPTS += tests/unit/exec/rewritten.sh
check_PROGRAMS += tests/unit/ptx/test_wait
tests_unit_ptx_test_wait_SOURCES = tests/unit/ptx/test_wait.c
tests_unit_ptx_test_wait_LDADD = ptx/libptx.a base/libbase.a $(LZ4_LIBS) $(ZSTD_LIBS) $(TEST_LDADD)
EXTRA_DIST += tests/ptx/waiting.ptx
TESTS += tests/unit/ptx/test_wait tests/unit/ptx/test_rewrite tests/unit/exec/rewritten.sh
check_PROGRAMS += tests/unit/exec/test_fence
tests_unit_exec_test_fence_SOURCES = tests/unit/exec/test_fence.c tests/unit/exec/fixture.c \
	tests/unit/exec/fixture.h
tests_unit_exec_test_fence_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/exec/test_fence
check_PROGRAMS += tests/unit/exec/test_fuse
tests_unit_exec_test_fuse_SOURCES = tests/unit/exec/test_fuse.c tests/unit/exec/fixture.c \
	tests/unit/exec/fixture.h
tests_unit_exec_test_fuse_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/exec/test_fuse
# Whole programs: memory after each launch of theirs.
dist_check_SCRIPTS += tests/process/differential.sh
TESTS += tests/process/differential.sh
