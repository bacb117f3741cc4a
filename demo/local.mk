# The demo: make demo
EXTRA_PROGRAMS += demo/table
demo_table_SOURCES = demo/table.c
demo_table_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS)
demo_table_LDADD = $(JSON_C_LIBS)
CLEANFILES += demo/table
# The tutorial's program: other people's, so without sanitizers and with nothing of ours linked in.
check_PROGRAMS += demo/sample
demo_sample_SOURCES = demo/sample.c
demo_sample_CFLAGS = $(CUDA_CFLAGS)
demo_sample_LDFLAGS =
demo_sample_LDADD = -ldl -lm
EXTRA_DIST += demo/run.sh demo/README.md demo/output.txt demo/picture.py demo/next.txt

# What it runs, and no more: who tries the demo waits for the compiler.
DEMO_NVCC = matmul_static aes_shared sort_static search_shared blackscholes_static histogram_shared
DEMO_NEEDS = backend/wattshared cli/wattshare frontend/wattshare-driver/stamp demo/table demo/sample \
	$(CUDA_DRIVER_WORKLOADS:%=tests/cuda/drv_%)
if HAVE_NVCC
DEMO_NEEDS += $(DEMO_NVCC:%=tests/cuda/nv/%)
endif
.PHONY: demo demo-programs
demo-programs: $(BUILT_SOURCES) config.h
	$(MAKE) $(AM_MAKEFLAGS) $(DEMO_NEEDS)
demo: demo-programs
	@srcdir=$(top_srcdir) $(top_srcdir)/demo/run.sh
