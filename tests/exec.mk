# exec tests
EXTRA_DIST += tests/unit/exec/README.md
EXEC_LDADD = device/libdevice.a ptx/libptx.a base/libbase.a $(CONFUSE_LIBS) $(LZ4_LIBS) \
	$(ZSTD_LIBS) $(LIBMD_LIBS) $(TEST_LDADD) -lpthread -lm
check_PROGRAMS += tests/unit/exec/test_async tests/unit/exec/test_cluster \
	tests/unit/exec/test_tensor tests/unit/exec/test_wgmma tests/unit/exec/test_matrix tests/unit/exec/test_ops \
	tests/unit/exec/test_flow
tests_unit_exec_test_async_SOURCES = tests/unit/exec/test_async.c tests/unit/exec/fixture.c \
	tests/unit/exec/fixture.h
tests_unit_exec_test_tensor_SOURCES = tests/unit/exec/test_tensor.c tests/unit/exec/fixture.c \
	tests/unit/exec/fixture.h
tests_unit_exec_test_tensor_LDADD = $(EXEC_LDADD)
tests_unit_exec_test_wgmma_SOURCES = tests/unit/exec/test_wgmma.c tests/unit/exec/fixture.c \
	tests/unit/exec/fixture.h
tests_unit_exec_test_wgmma_LDADD = $(EXEC_LDADD)
tests_unit_exec_test_async_LDADD = $(EXEC_LDADD)
tests_unit_exec_test_cluster_SOURCES = tests/unit/exec/test_cluster.c tests/unit/exec/fixture.c \
	tests/unit/exec/fixture.h
tests_unit_exec_test_cluster_LDADD = $(EXEC_LDADD)
tests_unit_exec_test_ops_SOURCES = tests/unit/exec/test_ops.c tests/unit/exec/op_rows.inc \
	tests/unit/exec/more_rows.inc tests/unit/exec/format_ref.inc tests/unit/exec/fixture.c \
	tests/unit/exec/fixture.h
tests_unit_exec_test_matrix_SOURCES = tests/unit/exec/test_matrix.c tests/unit/exec/fixture.c \
	tests/unit/exec/fixture.h
tests_unit_exec_test_matrix_LDADD = $(EXEC_LDADD)
tests_unit_exec_test_ops_LDADD = $(EXEC_LDADD)
# the reference changes the rounding direction
tests_unit_exec_test_ops_CFLAGS = $(AM_CFLAGS) -frounding-math -ffp-contract=off -Wno-unused-function
tests_unit_exec_test_flow_SOURCES = tests/unit/exec/test_flow.c tests/unit/exec/fixture.c \
	tests/unit/exec/fixture.h
tests_unit_exec_test_flow_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/exec/test_async tests/unit/exec/test_cluster tests/unit/exec/test_tensor \
	tests/unit/exec/test_wgmma \
	tests/unit/exec/test_matrix \
	tests/unit/exec/test_ops \
	tests/unit/exec/test_flow
check_PROGRAMS += tests/unit/exec/test_nvcc
tests_unit_exec_test_nvcc_SOURCES = tests/unit/exec/test_nvcc.c tests/unit/exec/fixture.c \
	tests/unit/exec/fixture.h
tests_unit_exec_test_nvcc_CPPFLAGS = $(AM_CPPFLAGS) -DWS_SRCDIR='"$(abs_top_srcdir)"'
tests_unit_exec_test_nvcc_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/exec/test_nvcc
EXTRA_DIST += tests/ptx_run/kernels.cu tests/ptx_run/regenerate.sh tests/ptx_run/kernels.o3.ptx \
	tests/ptx_run/kernels.debug.ptx tests/ptx_run/kernels.fast.ptx
check_PROGRAMS += tests/unit/exec/test_forms
tests_unit_exec_test_forms_SOURCES = tests/unit/exec/test_forms.c tests/unit/exec/fixture.c \
	tests/unit/exec/fixture.h
tests_unit_exec_test_forms_CPPFLAGS = $(AM_CPPFLAGS) -DWS_SRCDIR='"$(abs_top_srcdir)"'
tests_unit_exec_test_forms_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/exec/test_forms
EXTRA_DIST += tests/ptx/forms.txt
check_PROGRAMS += tests/unit/exec/test_tex
tests_unit_exec_test_tex_SOURCES = tests/unit/exec/test_tex.c tests/unit/exec/texture.h \
	tests/unit/exec/fixture.c tests/unit/exec/fixture.h
tests_unit_exec_test_tex_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/exec/test_tex
check_PROGRAMS += tests/unit/exec/test_surf tests/unit/exec/test_video
tests_unit_exec_test_surf_SOURCES = tests/unit/exec/test_surf.c tests/unit/exec/texture.h \
	tests/unit/exec/fixture.c tests/unit/exec/fixture.h
tests_unit_exec_test_surf_LDADD = $(EXEC_LDADD)
tests_unit_exec_test_video_SOURCES = tests/unit/exec/test_video.c tests/unit/exec/texture.h \
	tests/unit/exec/fixture.c tests/unit/exec/fixture.h
tests_unit_exec_test_video_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/exec/test_surf tests/unit/exec/test_video
check_PROGRAMS += tests/unit/exec/test_approx
tests_unit_exec_test_approx_SOURCES = tests/unit/exec/test_approx.c tests/unit/exec/fixture.c \
	tests/unit/exec/fixture.h
tests_unit_exec_test_approx_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/exec/test_approx
check_PROGRAMS += tests/unit/exec/test_memory
tests_unit_exec_test_memory_SOURCES = tests/unit/exec/test_memory.c tests/unit/exec/fixture.c \
	tests/unit/exec/fixture.h
tests_unit_exec_test_memory_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/exec/test_memory
check_PROGRAMS += tests/unit/exec/test_random
tests_unit_exec_test_random_SOURCES = tests/unit/exec/test_random.c \
	tests/unit/exec/random_program.c tests/unit/exec/random_program.h \
	tests/unit/exec/fixture.c tests/unit/exec/fixture.h
tests_unit_exec_test_random_CFLAGS = $(AM_CFLAGS) -ffp-contract=off
tests_unit_exec_test_random_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/exec/test_random
check_PROGRAMS += tests/unit/exec/test_stack
tests_unit_exec_test_stack_SOURCES = tests/unit/exec/test_stack.c tests/unit/exec/fixture.c \
	tests/unit/exec/fixture.h
tests_unit_exec_test_stack_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/exec/test_stack
check_PROGRAMS += tests/unit/exec/test_access
tests_unit_exec_test_access_SOURCES = tests/unit/exec/test_access.c tests/unit/exec/fixture.c \
	tests/unit/exec/fixture.h
tests_unit_exec_test_access_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/exec/test_access
check_PROGRAMS += tests/unit/exec/test_events
tests_unit_exec_test_events_SOURCES = tests/unit/exec/test_events.c tests/unit/exec/fixture.c \
	tests/unit/exec/fixture.h
tests_unit_exec_test_events_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/exec/test_events
check_PROGRAMS += tests/unit/exec/test_jit
tests_unit_exec_test_jit_SOURCES = tests/unit/exec/test_jit.c tests/unit/exec/fixture.c \
	tests/unit/exec/fixture.h
tests_unit_exec_test_jit_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/exec/test_jit
check_PROGRAMS += tests/unit/exec/test_kept
tests_unit_exec_test_kept_SOURCES = tests/unit/exec/test_kept.c tests/unit/exec/fixture.c \
	tests/unit/exec/fixture.h
tests_unit_exec_test_kept_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/exec/test_kept
dist_check_SCRIPTS += tests/unit/exec/compiled.sh
TESTS += tests/unit/exec/compiled.sh
