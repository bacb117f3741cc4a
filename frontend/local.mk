# frontend: libwattshare.so. Its objects live in one archive, so that tests link the internals; the
# library takes them whole.
include frontend/facade.mk
FRONTEND_CHANNEL = frontend/channel/channel.c frontend/channel/channel.h frontend/channel/open.c \
	frontend/channel/private.h frontend/channel/ring.c frontend/channel/segment.c \
	frontend/channel/zmq_load.c frontend/channel/zmq_load.h
FRONTEND_SESSION = frontend/session/box.c frontend/session/box.h frontend/session/adopt.c \
	frontend/session/callers.c frontend/session/callers.h frontend/session/findings.c \
	frontend/session/findings.h frontend/session/copy.c frontend/session/freeze.c \
	frontend/session/freeze.h frontend/session/gate.c frontend/session/idtab.c \
	frontend/session/idtab.h frontend/session/image.c frontend/session/image.h \
	frontend/session/job.c frontend/session/link_image.c frontend/session/link_image.h \
	frontend/session/memory.c frontend/session/module.c frontend/session/output.c \
	frontend/session/private.h frontend/session/session.c frontend/session/session.h \
	frontend/session/staging.c frontend/session/stream.c frontend/session/vmm.c
FRONTEND_INTERPOSE = frontend/interpose/config.c frontend/interpose/dlhook.c \
	frontend/interpose/entrypoints.h frontend/interpose/files.c frontend/interpose/init.c \
	frontend/interpose/redirect.c frontend/interpose/redirect.h frontend/interpose/toolkit.c frontend/interpose/toolkit.h \
	frontend/interpose/variables.c frontend/interpose/variables.h
noinst_LIBRARIES += frontend/libfrontend.a
frontend_libfrontend_a_SOURCES = frontend/config.h frontend/wattshare.h $(FRONTEND_CHANNEL) \
	$(FRONTEND_SESSION) $(FRONTEND_INTERPOSE) $(FACADE_SOURCES)
FRONTEND_LIBS = protocol/libprotocol.a base/libbase.a $(PROTOBUF_C_LIBS) $(LIBMD_LIBS) -ldl -lpthread

wslib_PROGRAMS += frontend/libwattshare.so
frontend_libwattshare_so_SOURCES = frontend/interpose/entrypoints.h
# SONAME libcuda.so.1: a program that needs the driver gets this library where none is installed.
# initfirst: the redirect must be done before the constructors of libraries that register CUDA code.
# nodelete: it has threads and has redirected functions to itself, and so stays after dlclose().
# Not linked with libzmq: loading it takes milliseconds.
frontend_libwattshare_so_LDFLAGS = $(AM_LDFLAGS) -shared -Wl,-soname,libcuda.so.1 -Wl,-z,initfirst \
	-Wl,-z,nodelete -Wl,-z,relro -Wl,-z,now -Wl,-Bsymbolic \
	-Wl,--version-script,$(top_srcdir)/frontend/wattshare.map \
	-Wl,--whole-archive,frontend/libfrontend.a,--no-whole-archive
frontend_libwattshare_so_LDADD = $(FRONTEND_LIBS)
frontend_libwattshare_so_DEPENDENCIES = frontend/libfrontend.a base/libbase.a \
	protocol/libprotocol.a $(top_srcdir)/frontend/wattshare.map
# A folder where the library has the driver's file names (cli/verbs/run.c puts it into
# LD_LIBRARY_PATH).
frontend/wattshare-driver/stamp: frontend/libwattshare.so frontend/libwattshare-nvml.so
	$(AM_V_GEN)$(MKDIR_P) frontend/wattshare-driver && cd frontend/wattshare-driver && \
		ln -sf ../libwattshare.so libcuda.so.1 && ln -sf ../libwattshare.so libcuda.so && \
		ln -sf ../libwattshare-nvml.so libnvidia-ml.so.1 && ln -sf ../../cli/wattshare nvidia-smi && : >stamp
all-local: frontend/wattshare-driver/stamp
CLEANFILES += frontend/wattshare-driver/libcuda.so.1 frontend/wattshare-driver/libcuda.so \
	frontend/wattshare-driver/libnvidia-ml.so.1 frontend/wattshare-driver/nvidia-smi \
	frontend/wattshare-driver/stamp
# Beside the library: a program that calls ptxas and loads the result gets this one
# (cli/common/program.c).
wslib_SCRIPTS = frontend/wattshare-ptxas
EXTRA_DIST += frontend/compilers/ptxas.sh
CLEANFILES += frontend/wattshare-ptxas
frontend/wattshare-ptxas: frontend/compilers/ptxas.sh
	$(AM_V_GEN)$(MKDIR_P) frontend && cp $(top_srcdir)/frontend/compilers/ptxas.sh $@ && chmod 755 $@
# The same for nvcc. It needs the name, so it has a folder of its own, which comes first in PATH.
wscompilersdir = $(wslibdir)/wattshare-compilers
wscompilers_SCRIPTS = frontend/wattshare-compilers/nvcc
EXTRA_DIST += frontend/compilers/nvcc.sh
CLEANFILES += frontend/wattshare-compilers/nvcc
frontend/wattshare-compilers/nvcc: frontend/compilers/nvcc.sh
	$(AM_V_GEN)$(MKDIR_P) frontend/wattshare-compilers && \
		cp $(top_srcdir)/frontend/compilers/nvcc.sh $@ && chmod 755 $@
install-exec-hook:
	$(MKDIR_P) $(DESTDIR)$(wslibdir)/wattshare-driver $(DESTDIR)$(wslibdir)/wattshare-gate
	for n in libcuda.so.1 libcuda.so; do ln -sf ../libwattshare-gate.so $(DESTDIR)$(wslibdir)/wattshare-gate/$$n || exit 1; done
	for n in libcuda.so.1 libcuda.so; do ln -sf ../libwattshare.so $(DESTDIR)$(wslibdir)/wattshare-driver/$$n || exit 1; done
	ln -sf ../libwattshare-nvml.so $(DESTDIR)$(wslibdir)/wattshare-driver/libnvidia-ml.so.1
	ln -sf $(bindir)/wattshare $(DESTDIR)$(wslibdir)/wattshare-driver/nvidia-smi
uninstall-hook:
	rm -rf $(DESTDIR)$(wslibdir)/wattshare-driver $(DESTDIR)$(wslibdir)/wattshare-gate
include_HEADERS = frontend/wattshare.h
EXTRA_DIST += frontend/wattshare.map frontend/README.md frontend/both/README.md \
	frontend/channel/README.md frontend/compilers/README.md frontend/context/README.md \
	frontend/driver/README.md frontend/graph/README.md frontend/interpose/README.md \
	frontend/memory/README.md frontend/module/README.md frontend/runtime/README.md \
	frontend/session/README.md frontend/stream/README.md frontend/texture/README.md
include frontend/gate/local.mk
include frontend/nvml/local.mk
include frontend/blas/local.mk
