# exec tests
EXEC_LDADD = device/libdevice.a ptx/libptx.a base/libbase.a $(CONFUSE_LIBS) $(LZ4_LIBS) $(ZSTD_LIBS) $(TEST_LDADD) -lpthread -lm
check_PROGRAMS += tests/unit/test_exec_async tests/unit/test_exec_matrix tests/unit/test_exec_ops tests/unit/test_exec_flow
tests_unit_test_exec_async_SOURCES = tests/unit/test_exec_async.c tests/unit/exec_fixture.c tests/unit/exec_fixture.h
tests_unit_test_exec_async_LDADD = $(EXEC_LDADD)
tests_unit_test_exec_ops_SOURCES = tests/unit/test_exec_ops.c tests/unit/exec_op_rows.inc tests/unit/exec_more_rows.inc \
    tests/unit/exec_format_ref.inc tests/unit/exec_fixture.c tests/unit/exec_fixture.h
tests_unit_test_exec_matrix_SOURCES = tests/unit/test_exec_matrix.c tests/unit/exec_fixture.c tests/unit/exec_fixture.h
tests_unit_test_exec_matrix_LDADD = $(EXEC_LDADD)
tests_unit_test_exec_ops_LDADD = $(EXEC_LDADD)
# the reference changes the rounding direction
tests_unit_test_exec_ops_CFLAGS = $(AM_CFLAGS) -frounding-math -ffp-contract=off -Wno-unused-function
tests_unit_test_exec_flow_SOURCES = tests/unit/test_exec_flow.c tests/unit/exec_fixture.c tests/unit/exec_fixture.h
tests_unit_test_exec_flow_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/test_exec_async tests/unit/test_exec_matrix tests/unit/test_exec_ops tests/unit/test_exec_flow
check_PROGRAMS += tests/unit/test_exec_nvcc
tests_unit_test_exec_nvcc_SOURCES = tests/unit/test_exec_nvcc.c tests/unit/exec_fixture.c tests/unit/exec_fixture.h
tests_unit_test_exec_nvcc_CPPFLAGS = $(AM_CPPFLAGS) -DWS_SRCDIR='"$(abs_top_srcdir)"'
tests_unit_test_exec_nvcc_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/test_exec_nvcc
EXTRA_DIST += tests/ptx_run/kernels.cu tests/ptx_run/regenerate.sh tests/ptx_run/kernels.o3.ptx tests/ptx_run/kernels.debug.ptx tests/ptx_run/kernels.fast.ptx
check_PROGRAMS += tests/fuzz/fuzz_exec
tests_fuzz_fuzz_exec_SOURCES = tests/fuzz/fuzz_exec.c tests/fuzz/driver.c
tests_fuzz_fuzz_exec_LDADD = $(EXEC_LDADD)
dist_check_SCRIPTS += tests/fuzz/exec.sh
TESTS += tests/fuzz/exec.sh
EXTRA_DIST += tests/corpus/exec
check_PROGRAMS += tests/unit/test_exec_forms
tests_unit_test_exec_forms_SOURCES = tests/unit/test_exec_forms.c tests/unit/exec_fixture.c tests/unit/exec_fixture.h
tests_unit_test_exec_forms_CPPFLAGS = $(AM_CPPFLAGS) -DWS_SRCDIR='"$(abs_top_srcdir)"'
tests_unit_test_exec_forms_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/test_exec_forms
EXTRA_DIST += tests/ptx/forms.txt
check_PROGRAMS += tests/unit/test_exec_tex
tests_unit_test_exec_tex_SOURCES = tests/unit/test_exec_tex.c tests/unit/exec_texture.h tests/unit/exec_fixture.c tests/unit/exec_fixture.h
tests_unit_test_exec_tex_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/test_exec_tex
check_PROGRAMS += tests/unit/test_exec_surf tests/unit/test_exec_video
tests_unit_test_exec_surf_SOURCES = tests/unit/test_exec_surf.c tests/unit/exec_texture.h tests/unit/exec_fixture.c tests/unit/exec_fixture.h
tests_unit_test_exec_surf_LDADD = $(EXEC_LDADD)
tests_unit_test_exec_video_SOURCES = tests/unit/test_exec_video.c tests/unit/exec_texture.h tests/unit/exec_fixture.c tests/unit/exec_fixture.h
tests_unit_test_exec_video_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/test_exec_surf tests/unit/test_exec_video
check_PROGRAMS += tests/unit/test_exec_approx
tests_unit_test_exec_approx_SOURCES = tests/unit/test_exec_approx.c tests/unit/exec_fixture.c tests/unit/exec_fixture.h
tests_unit_test_exec_approx_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/test_exec_approx
check_PROGRAMS += tests/unit/test_exec_memory
tests_unit_test_exec_memory_SOURCES = tests/unit/test_exec_memory.c tests/unit/exec_fixture.c tests/unit/exec_fixture.h
tests_unit_test_exec_memory_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/test_exec_memory
check_PROGRAMS += tests/unit/test_exec_random
tests_unit_test_exec_random_SOURCES = tests/unit/test_exec_random.c tests/unit/random_program.c tests/unit/random_program.h \
    tests/unit/exec_fixture.c tests/unit/exec_fixture.h
tests_unit_test_exec_random_CFLAGS = $(AM_CFLAGS) -ffp-contract=off
tests_unit_test_exec_random_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/test_exec_random
check_PROGRAMS += tests/unit/test_exec_stack
tests_unit_test_exec_stack_SOURCES = tests/unit/test_exec_stack.c tests/unit/exec_fixture.c tests/unit/exec_fixture.h
tests_unit_test_exec_stack_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/test_exec_stack
check_PROGRAMS += tests/unit/test_exec_access
tests_unit_test_exec_access_SOURCES = tests/unit/test_exec_access.c tests/unit/exec_fixture.c tests/unit/exec_fixture.h
tests_unit_test_exec_access_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/test_exec_access
