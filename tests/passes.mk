# Rewritten kernels: as text, what is refused, and that they compute the same.
check_PROGRAMS += tests/unit/test_ptx_rewrite
tests_unit_test_ptx_rewrite_SOURCES = tests/unit/test_ptx_rewrite.c tests/unit/rewrite_golden.inc tests/unit/fence_fuse_golden.inc
tests_unit_test_ptx_rewrite_LDADD = ptx/libptx.a base/libbase.a $(LZ4_LIBS) $(ZSTD_LIBS) $(TEST_LDADD)
dist_check_SCRIPTS += tests/unit/rewritten.sh
check_PROGRAMS += tests/unit/test_ptx_wait
tests_unit_test_ptx_wait_SOURCES = tests/unit/test_ptx_wait.c
tests_unit_test_ptx_wait_LDADD = ptx/libptx.a base/libbase.a $(LZ4_LIBS) $(ZSTD_LIBS) $(TEST_LDADD)
EXTRA_DIST += tests/ptx/waiting.ptx
TESTS += tests/unit/test_ptx_wait tests/unit/test_ptx_rewrite tests/unit/rewritten.sh
check_PROGRAMS += tests/unit/test_exec_fence
tests_unit_test_exec_fence_SOURCES = tests/unit/test_exec_fence.c tests/unit/exec_fixture.c tests/unit/exec_fixture.h
tests_unit_test_exec_fence_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/test_exec_fence
check_PROGRAMS += tests/unit/test_exec_fuse
tests_unit_test_exec_fuse_SOURCES = tests/unit/test_exec_fuse.c tests/unit/exec_fixture.c tests/unit/exec_fixture.h
tests_unit_test_exec_fuse_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/test_exec_fuse
# Whole programs: memory after each launch of theirs.
dist_check_SCRIPTS += tests/process/differential.sh
TESTS += tests/process/differential.sh
