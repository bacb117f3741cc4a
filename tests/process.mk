# Process tests: programs, daemon and library together. Each starts a daemon of its own; tests/process/lib.sh is what they share.
PROCESS_TESTS = tests/process/cli.sh tests/process/clients.sh tests/process/clients_nvcc.sh tests/process/faults.sh \
	tests/process/kills.sh
dist_check_SCRIPTS += $(PROCESS_TESTS)
TEST_EXTENSIONS = .sh
TESTS += $(PROCESS_TESTS)
EXTRA_DIST += tests/process/lib.sh tests/process/README.md tests/process/installed.sh

installcheck-local: tests/cuda/drv_matmul
	srcdir=$(top_srcdir) $(top_srcdir)/tests/process/installed.sh $(DESTDIR)$(bindir) $(DESTDIR)$(sbindir) \
	  $(DESTDIR)$(wslibdir) $(DESTDIR)$(mandir)

# nvcc's programs were built and run by the tree that distcheck starts from.
AM_DISTCHECK_CONFIGURE_FLAGS = --with-nvcc=no --enable-werror
