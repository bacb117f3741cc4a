# the interpreter alone
BENCHES += bench/bench_interp
bench_bench_interp_SOURCES = bench/bench_interp.c bench/bench_interp_c.c bench/bench_interp_c.h \
	bench/opencl/peer.c bench/opencl/peer.h
bench_bench_interp_CPPFLAGS = $(AM_CPPFLAGS) -DWS_SRCDIR='"$(abs_top_srcdir)"'
bench_bench_interp_LDADD = device/libdevice.a ptx/libptx.a base/libbase.a $(CONFUSE_LIBS) \
	$(LZ4_LIBS) $(ZSTD_LIBS) $(LIBMD_LIBS) -lpthread -lm
EXTRA_DIST += bench/opencl/README.md
EXTRA_DIST += bench/bench_interp.ptx bench/bench_interp.cu bench/opencl/kernels.cl bench/jit.sh \
	bench/pocl.sh
# programs whose time and power others have measured, on software GPUs
BENCHES += bench/bench_truth
bench_bench_truth_SOURCES = bench/bench_truth.c bench/truth/run.c bench/truth/run.h
bench_bench_truth_CPPFLAGS = $(AM_CPPFLAGS) -DWS_SRCDIR='"$(abs_top_srcdir)"'
bench_bench_truth_LDADD = papers/libpapers.a device/libdevice.a ptx/libptx.a base/libbase.a \
	$(CONFUSE_LIBS) $(LZ4_LIBS) $(ZSTD_LIBS) $(LIBMD_LIBS) -lpthread -lm
BENCHES += bench/bench_boards
bench_bench_boards_SOURCES = bench/bench_boards.c bench/truth/run.c bench/truth/run.h
bench_bench_boards_CPPFLAGS = $(bench_bench_truth_CPPFLAGS)
bench_bench_boards_LDADD = $(bench_bench_truth_LDADD)
EXTRA_DIST += bench/truth.sh bench/truth/README.md \
	bench/truth/kernels.cu bench/truth/kernels.ptx \
	bench/truth/boards.cu bench/truth/boards.ptx
.PHONY: truth-ptx
truth-ptx:
	cd $(top_srcdir)/bench/truth && $(NVCC) -ptx -arch=compute_75 -o kernels.ptx kernels.cu
	cd $(top_srcdir)/bench/truth && $(NVCC) -ptx -arch=compute_75 -o boards.ptx boards.cu
