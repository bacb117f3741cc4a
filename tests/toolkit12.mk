# A program built before CUDA 13, as far as that shows: with the shared runtime and with a static
# one.
check_PROGRAMS += tests/cuda/rt12_stub.so tests/cuda/rt12_shared tests/cuda/rt12_static
tests_cuda_rt12_stub_so_SOURCES = tests/cuda/rt_older_stub.h tests/cuda/rt12_stub.c
tests_cuda_rt12_stub_so_CFLAGS = $(CUDA_CFLAGS) -fPIC
tests_cuda_rt12_stub_so_LDFLAGS =
tests_cuda_rt12_stub_so_LINK = $(CC) $(CFLAGS) -shared -Wl,-soname,libcudart.so.12 \
	-Wl,--version-script,$(srcdir)/tests/cuda/rt12_stub.map -o $@
tests_cuda_rt12_shared_SOURCES = tests/cuda/rt_older.h tests/cuda/rt12.c
tests_cuda_rt12_shared_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_rt12_shared_LDFLAGS =
tests_cuda_rt12_shared_LDADD = tests/cuda/rt12_stub.so
tests_cuda_rt12_static_SOURCES = tests/cuda/rt_older.h tests/cuda/rt12.c \
	tests/cuda/rt_older_stub.h tests/cuda/rt12_stub.c
tests_cuda_rt12_static_CFLAGS = $(CUDA_CFLAGS) -O2
tests_cuda_rt12_static_LDFLAGS =
check_PROGRAMS += tests/cuda/rt11_static
tests_cuda_rt11_static_SOURCES = tests/cuda/rt_older.h tests/cuda/rt11.c \
	tests/cuda/rt_older_stub.h tests/cuda/rt11_stub.c
tests_cuda_rt11_static_CFLAGS = $(CUDA_CFLAGS) -O2
tests_cuda_rt11_static_LDFLAGS =
EXTRA_DIST += tests/cuda/rt12_stub.map
dist_check_SCRIPTS += tests/process/toolkit12.sh
TESTS += tests/process/toolkit12.sh
