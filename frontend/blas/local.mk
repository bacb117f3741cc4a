# cuBLAS and cuBLASLt for programs whose GPU executes PTX. Like NVIDIA's it calls the driver, which
# is libwattshare.so.
noinst_LIBRARIES += frontend/blas/libblas.a
frontend_blas_libblas_a_SOURCES = frontend/blas/blas.h frontend/blas/copy.c frontend/blas/handle.c \
	frontend/blas/kernels.h frontend/blas/kernels.inc frontend/blas/lt.c frontend/blas/matrix.c \
	frontend/blas/missing.c frontend/blas/missing.def frontend/blas/product.c frontend/blas/run.c \
	frontend/blas/triangle.c frontend/blas/vector.c
wslib_PROGRAMS += frontend/libwattshare-blas.so
frontend_libwattshare_blas_so_SOURCES = frontend/blas/blas.h
frontend_libwattshare_blas_so_LDFLAGS = $(AM_LDFLAGS) -shared -Wl,-soname,libwattshare-blas.so \
	-Wl,-z,relro -Wl,-z,now -Wl,-z,nodelete -Wl,-Bsymbolic \
	-Wl,--version-script,$(top_srcdir)/frontend/blas/blas.map \
	-Wl,--whole-archive,frontend/blas/libblas.a,--no-whole-archive
frontend_libwattshare_blas_so_LDADD = frontend/libwattshare.so base/libbase.a -lm -lpthread
frontend_libwattshare_blas_so_DEPENDENCIES = frontend/blas/libblas.a base/libbase.a \
	frontend/libwattshare.so $(top_srcdir)/frontend/blas/blas.map
EXTRA_DIST += frontend/blas/blas.map frontend/blas/README.md frontend/blas/kernels.cu tools/blas.py
