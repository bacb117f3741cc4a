# Process tests: programs, daemon and library together. Each starts a daemon of its own;
# tests/process/lib.sh is what they share.
PROCESS_TESTS = tests/process/analyze.sh tests/process/rewritten.sh tests/process/cli.sh \
	tests/process/calibrate.sh tests/process/check.sh tests/process/cluster.sh \
	tests/process/clients.sh tests/process/clients_nvcc.sh tests/process/cuda.sh \
	tests/process/cuda_pair.sh tests/process/merged.sh tests/process/cuda_lib.sh \
	tests/process/machine.sh tests/process/faults.sh tests/process/endless.sh \
	tests/process/kills.sh tests/process/kills_policies.sh tests/process/profile.sh \
	tests/process/kept.sh tests/process/profiles.sh tests/process/real_clients.sh \
	tests/process/scaled.sh \
	tests/process/sim.sh tests/process/sim_rt.sh tests/process/tasks.sh \
	tests/process/policy.sh tests/process/examples.sh tests/process/tutorial.sh tests/process/blas.sh \
	tests/process/energy.sh tests/process/nvml.sh tests/process/report.sh \
	tests/process/doctor.sh tests/process/containers.sh tests/process/allotted.sh
dist_check_SCRIPTS += $(PROCESS_TESTS)
TEST_EXTENSIONS = .sh
TESTS += $(PROCESS_TESTS)
EXTRA_DIST += tests/process/alone_with_header.c tests/process/lib.sh tests/process/README.md \
	tests/process/installed.sh tests/clients/numba_client.py tests/clients/tinygrad_client.py \
	tests/clients/triton_client.py tests/clients/halide_client.py tests/clients/nvrtc_client.c \
	tests/clients/README.md tests/clients/programs.py tests/clients/one_each.py \
	tests/clients/inductor_ops.py

check_PROGRAMS += tests/process/nvml_user
tests_process_nvml_user_SOURCES = tests/process/nvml_user.c
tests_process_nvml_user_CFLAGS = $(AM_CFLAGS) -Wno-strict-prototypes
tests_process_nvml_user_LDADD = -ldl

check_PROGRAMS += tests/process/blas_user
tests_process_blas_user_SOURCES = tests/process/blas_user.c
tests_process_blas_user_CFLAGS = $(AM_CFLAGS) -Wno-strict-prototypes
tests_process_blas_user_LDADD = -ldl -lm

installcheck-local: tests/cuda/drv_matmul
	srcdir=$(top_srcdir) $(top_srcdir)/tests/process/installed.sh $(DESTDIR)$(bindir) $(DESTDIR)$(sbindir) \
	  $(DESTDIR)$(wslibdir) $(DESTDIR)$(mandir)

# nvcc's programs were built and run by the tree that distcheck starts from.
AM_DISTCHECK_CONFIGURE_FLAGS = --with-nvcc=no --enable-werror CFLAGS='-O2 -g'

# What real_clients.sh and nvml.sh installed, and what nvcc made for tests/ptx/nvcc.sh.
clean-local:
	rm -rf tests/clients/venv tests/clients/nvml-venv tests/ptx/nv
