# The programs of the live experiments (doc/live.md). An ordinary program: no sanitizer, nothing of
# ours linked in.
wslib_PROGRAMS += bench/live/program
bench_live_program_SOURCES = bench/live/program.c bench/live/work.c bench/live/clock.c \
	bench/live/clock.h bench/live/live.h bench/live/live_work.h tests/cuda/drv_load_dlsym.c \
	tests/cuda/aes.h $(CUDA_DRV)
bench_live_program_CFLAGS = $(CUDA_CFLAGS)
bench_live_program_CPPFLAGS = $(CUDA_CPPFLAGS) -I$(top_srcdir) -I$(top_srcdir)/tests/cuda -I$(top_srcdir)/bench/live \
	-DLIVE_PTX='"$(abs_top_srcdir)/bench/live/kernels.ptx"'
bench_live_program_LDFLAGS =
bench_live_program_LDADD = -ldl -lm
bench/live/program-program.$(OBJEXT): bench/live/kernels.ptx
EXTRA_DIST += bench/live/kernels.cu bench/live/kernels.ptx bench/live/README.md
.PHONY: live-ptx
live-ptx:
	cd $(top_srcdir)/bench/live && $(NVCC) -ptx -arch=compute_75 -o kernels.ptx kernels.cu

BENCHES += bench/bench_dispatch
bench_bench_dispatch_SOURCES = bench/bench_dispatch.c
bench_bench_dispatch_LDADD = $(WSCLIENT_LDADD)

PROCESS_TESTS += tests/process/live.sh
tests/process/live.log tests/process/merged.log: bench/live/program
