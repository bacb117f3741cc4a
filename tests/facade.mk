# Tests of the façades. The unit tests link a session that only records (fake_session.c) in the real
# one's place.
FACADE_TEST_SOURCES = frontend/interpose/toolkit.c frontend/interpose/redirect.c \
	frontend/interpose/variables.c \
	tests/unit/frontend/fake_session.h tests/unit/frontend/fake_session.c \
	frontend/session/callers.h frontend/session/callers.c \
	frontend/session/image.h frontend/session/image.c frontend/session/link_image.h \
	frontend/session/link_image.c frontend/session/box.h frontend/session/box.c \
	$(FACADE_SOURCES)
FACADE_TEST_LIBS = protocol/libprotocol.a base/libbase.a $(PROTOBUF_C_LIBS) -ldl -lpthread
check_PROGRAMS += tests/unit/frontend/test_facade tests/unit/frontend/test_facade_table
tests_unit_frontend_test_facade_SOURCES = tests/unit/frontend/test_facade.c $(FACADE_TEST_SOURCES)
tests_unit_frontend_test_facade_LDADD = $(FACADE_TEST_LIBS) $(TEST_LDADD)
tests_unit_frontend_test_facade_table_SOURCES = tests/unit/frontend/test_facade_table.c $(FACADE_TEST_SOURCES)
tests_unit_frontend_test_facade_table_LDADD = $(FACADE_TEST_LIBS) $(TEST_LDADD)
check_PROGRAMS += tests/unit/frontend/test_facade_texture
tests_unit_frontend_test_facade_texture_SOURCES = tests/unit/frontend/test_facade_texture.c \
	$(FACADE_TEST_SOURCES)
tests_unit_frontend_test_facade_texture_LDADD = $(tests_unit_frontend_test_facade_LDADD)
TESTS += tests/unit/frontend/test_facade_texture
TESTS += tests/unit/frontend/test_facade tests/unit/frontend/test_facade_table
check_PROGRAMS += tests/unit/frontend/test_graph_plan
tests_unit_frontend_test_graph_plan_SOURCES = tests/unit/frontend/test_graph_plan.c $(FACADE_TEST_SOURCES)
tests_unit_frontend_test_graph_plan_LDADD = $(FACADE_TEST_LIBS) $(TEST_LDADD)
TESTS += tests/unit/frontend/test_graph_plan

check_PROGRAMS += tests/process/facade_driver
tests_process_facade_driver_SOURCES = tests/process/facade_driver.c
tests_process_facade_driver_CFLAGS = $(CUDA_CFLAGS)
tests_process_facade_driver_LDFLAGS =
tests_process_facade_driver_LDADD = -ldl
# facade_runtime.cu and facade_runtime2.cu in each of the ways that nvcc's code reaches the runtime.
# Built once, as the programs of tests/cuda.mk: nvcc takes longer for them than the test.
if HAVE_NVCC
FACADE_NVCC_BUILT = tests/cuda/nv/facade_static tests/cuda/nv/facade_shared \
	tests/cuda/nv/facade_per_thread tests/cuda/nv/facade_older
endif
FACADE_NVCC_OBJECTS = tests/cuda/nv/facade_runtime.plain.o tests/cuda/nv/facade_runtime2.plain.o \
	tests/cuda/nv/facade_runtime.ptsz.o tests/cuda/nv/facade_runtime2.ptsz.o \
	tests/cuda/nv/facade_runtime.legacy.o tests/cuda/nv/facade_runtime2.legacy.o
check_DATA += $(FACADE_NVCC_BUILT)
CLEANFILES += $(FACADE_NVCC_BUILT) $(FACADE_NVCC_OBJECTS)
.SECONDARY: $(FACADE_NVCC_OBJECTS)
FACADE_NVCC = $(AM_V_GEN)$(MKDIR_P) tests/cuda/nv && $(NVCC_CACHE) $(NVCC) -w -O1
tests/cuda/nv/%.plain.o: tests/process/%.cu
	$(FACADE_NVCC) -c -o $@ $<
tests/cuda/nv/%.ptsz.o: tests/process/%.cu
	$(FACADE_NVCC) -default-stream per-thread -c -o $@ $<
tests/cuda/nv/%.legacy.o: tests/process/%.cu
	$(FACADE_NVCC) -D__NV_LEGACY_LAUNCH -Xcompiler -D__NV_LEGACY_LAUNCH -c -o $@ $<
tests/cuda/nv/facade_static: tests/cuda/nv/facade_runtime.plain.o tests/cuda/nv/facade_runtime2.plain.o
	$(FACADE_NVCC) -cudart static -o $@ $^
tests/cuda/nv/facade_shared: tests/cuda/nv/facade_runtime.plain.o tests/cuda/nv/facade_runtime2.plain.o
	$(FACADE_NVCC) -cudart shared -o $@ $^
tests/cuda/nv/facade_per_thread: tests/cuda/nv/facade_runtime.ptsz.o tests/cuda/nv/facade_runtime2.ptsz.o
	$(FACADE_NVCC) -cudart shared -o $@ $^
tests/cuda/nv/facade_older: tests/cuda/nv/facade_runtime.legacy.o tests/cuda/nv/facade_runtime2.legacy.o
	$(FACADE_NVCC) -o $@ $^
EXTRA_DIST += tests/process/facade_runtime.cu tests/process/facade_runtime2.cu \
	tests/process/facade_types.c tools/entrypoints.py tools/facade_pairs.py \
	tools/static_runtimes.py
dist_check_SCRIPTS += tests/process/facade.sh tests/process/exports.sh tests/process/toolkit.sh
TESTS += tests/process/facade.sh tests/process/exports.sh tests/process/toolkit.sh
