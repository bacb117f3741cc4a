# the interpreter alone
BENCHES += bench/bench_interp
bench_bench_interp_SOURCES = bench/bench_interp.c bench/bench_interp_c.c bench/bench_interp_c.h
bench_bench_interp_CPPFLAGS = $(AM_CPPFLAGS) -DWS_SRCDIR='"$(abs_top_srcdir)"'
bench_bench_interp_LDADD = device/libdevice.a ptx/libptx.a base/libbase.a $(CONFUSE_LIBS) $(LZ4_LIBS) $(ZSTD_LIBS) -lpthread -lm
EXTRA_DIST += bench/bench_interp.ptx bench/bench_interp.cu
