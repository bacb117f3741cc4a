# The mock driver, and one suite for all devices.
noinst_LIBRARIES += tests/mock/libmock.a
tests_mock_libmock_a_SOURCES = tests/mock/gpu.h tests/mock/mock.h tests/mock/mock.c \
	tests/mock/memory.c tests/mock/green.c tests/mock/stream.c tests/mock/module.c \
	tests/mock/program.c tests/mock/machine.c
check_PROGRAMS += tests/mock/libcuda.so.1 tests/mock/libnvidia-ml.so.1
tests_mock_libcuda_so_1_SOURCES = tests/mock/mock.h
tests_mock_libcuda_so_1_LDFLAGS = $(AM_LDFLAGS) -shared -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic \
	-Wl,-z,nodelete -Wl,--whole-archive,tests/mock/libmock.a,--no-whole-archive
tests_mock_libcuda_so_1_LDADD = device/libdevice.a ptx/libptx.a base/libbase.a $(CONFUSE_LIBS) \
	$(LZ4_LIBS) $(ZSTD_LIBS) $(LIBMD_LIBS) -lpthread -lm
tests_mock_libcuda_so_1_DEPENDENCIES = tests/mock/libmock.a device/libdevice.a ptx/libptx.a base/libbase.a
tests_mock_libnvidia_ml_so_1_SOURCES = tests/mock/nvml.c
tests_mock_libnvidia_ml_so_1_LDFLAGS = $(AM_LDFLAGS) -shared -Wl,-soname,libnvidia-ml.so.1
tests_mock_libnvidia_ml_so_1_LDADD = -ldl

check_PROGRAMS += tests/device/conformance
tests_device_conformance_SOURCES = tests/device/suite.h tests/device/suite.c \
	tests/device/machine_code.c tests/device/texture.c tests/device/conformance.c \
	$(CUBIN_MAKE)
tests_device_conformance_SOURCES += tests/device/lib.h tests/device/lib.c
tests_device_conformance_LDADD = $(DEVICE_LDADD) -ldl
check_PROGRAMS += tests/device/keep
tests_device_keep_SOURCES = tests/device/suite.h tests/device/suite.c tests/device/keep.c
tests_device_keep_LDADD = $(DEVICE_LDADD) -ldl
check_PROGRAMS += tests/device/pair
tests_device_pair_SOURCES = tests/device/suite.h tests/device/suite.c tests/device/pair.c
tests_device_pair_LDADD = $(DEVICE_LDADD) -ldl
MOCKED = tests/device/mocked.h tests/device/mocked.c
check_PROGRAMS += tests/device/inject
tests_device_inject_SOURCES = tests/device/suite.h tests/device/suite.c $(MOCKED) \
	tests/device/machine_code.c tests/device/inject.c $(CUBIN_MAKE)
tests_device_inject_LDADD = $(DEVICE_LDADD) -ldl
check_PROGRAMS += tests/device/lost
tests_device_lost_SOURCES = tests/device/suite.h tests/device/suite.c $(MOCKED) tests/device/lost.c
tests_device_lost_LDADD = $(DEVICE_LDADD) -ldl
check_PROGRAMS += tests/device/waits
tests_device_waits_SOURCES = tests/device/suite.h tests/device/suite.c $(MOCKED) tests/device/waits.c
tests_device_waits_LDADD = $(DEVICE_LDADD) -ldl
check_PROGRAMS += tests/device/time
tests_device_time_SOURCES = tests/device/suite.h tests/device/suite.c $(MOCKED) tests/device/time.c
tests_device_time_LDADD = $(DEVICE_LDADD) -ldl
DEVICE_TESTS = tests/device/soft.sh tests/device/mock.sh tests/device/inject.sh \
	tests/device/lost.sh tests/device/waits.sh tests/device/time.sh tests/gpu/mock.sh
dist_check_SCRIPTS += $(DEVICE_TESTS)
TESTS += $(DEVICE_TESTS)

# The device on our own frontend as its driver.
check_PROGRAMS += tests/process/far_addresses
tests_process_far_addresses_SOURCES = tests/process/far_addresses.c
tests_process_far_addresses_LDADD = -ldl
check_PROGRAMS += tests/process/waited tests/process/libwaited.so
tests_process_waited_SOURCES = tests/process/waited.h tests/process/waited.c
tests_process_waited_LDADD =
tests_process_libwaited_so_SOURCES = tests/process/waited.h tests/process/waited_library.c
tests_process_libwaited_so_CFLAGS = $(CUDA_CFLAGS) -fPIC
tests_process_libwaited_so_LDFLAGS =
tests_process_libwaited_so_LINK = $(CC) $(CFLAGS) -shared -o $@
dist_check_SCRIPTS += tests/process/nested.sh tests/process/prefork.sh
TESTS += tests/process/nested.sh tests/process/prefork.sh

check_PROGRAMS += tests/unit/device/test_clocks
TESTS += tests/unit/device/test_clocks
tests_unit_device_test_clocks_SOURCES = tests/unit/device/test_clocks.c
tests_unit_device_test_clocks_LDADD = $(DEVICE_LDADD) $(TEST_LDADD)

if HAVE_NVCC
check_PROGRAMS += tests/device/test_cuda_abi
tests_device_test_cuda_abi_SOURCES = tests/device/test_cuda_abi.c
tests_device_test_cuda_abi_CPPFLAGS = $(AM_CPPFLAGS) -isystem $$(dirname $(NVCC))/../include
TESTS += tests/device/test_cuda_abi
endif

check_PROGRAMS += tests/gpu/probe
tests_gpu_probe_SOURCES = tests/device/suite.h tests/device/suite.c tests/gpu/probe.h \
	tests/gpu/probe.c tests/gpu/measure.c tests/gpu/mwp.c tests/gpu/calibrate.c
tests_gpu_probe_LDADD = models/libmodels.a $(DEVICE_LDADD) $(SQLITE_LIBS) $(LIBMD_LIBS) -ldl
EXTRA_DIST += tests/gpu/lib.sh tests/gpu/gate.sh tests/gpu/sass.sh tests/gpu/overhead.sh \
	tests/gpu/isolation.sh tests/gpu/parts.sh
EXTRA_DIST += tests/gpu/run tests/gpu/bundle.sh tests/gpu/rehearse.sh tests/gpu/README.md tests/gpu/plan.md \
	tests/mock/README.md tests/mock/freedoms.md tests/device/README.md

# All that tests/gpu/run needs on a machine with a GPU, in one archive.
.PHONY: bundle
bundle: all bench/bench_worker tests/device/worker tests/device/conformance tests/device/keep tests/device/pair tests/gpu/probe tests/gpu/cublas tests/cuda/drv_gate tests/cuda/drv_rates $(CUDA_SASS_BUILT) tests/mock/libcuda.so.1 tests/mock/libnvidia-ml.so.1 $(CUDA_CLIENTS) $(CUDA_NVCC_BUILT)
	srcdir=$(top_srcdir) $(top_srcdir)/tests/gpu/bundle.sh $(PACKAGE)-$(VERSION)-gpu

check_PROGRAMS += tests/device/worker
tests_device_worker_SOURCES = tests/device/suite.h tests/device/suite.c tests/device/worker.c
tests_device_worker_LDADD = $(DEVICE_LDADD) -ldl

# What kernels print, and how they stop.
check_PROGRAMS += tests/unit/ptx/test_devlib
tests_unit_ptx_test_devlib_SOURCES = tests/unit/ptx/test_devlib.c
tests_unit_ptx_test_devlib_LDADD = $(EXEC_LDADD)
TESTS += tests/unit/ptx/test_devlib
