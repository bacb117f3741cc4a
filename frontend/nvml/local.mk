# NVML: a libnvidia-ml.so.1 that answers from the daemon's status. Its functions have no header
# here: programs bring NVIDIA's.
noinst_LIBRARIES += frontend/nvml/libnvml.a
frontend_nvml_libnvml_a_SOURCES = frontend/nvml/nvml.h frontend/nvml/ask.c frontend/nvml/device.c \
	frontend/nvml/fields.c frontend/nvml/not_supported.c frontend/nvml/not_supported.def \
	frontend/nvml/process.c frontend/nvml/state.c frontend/nvml/system.c
frontend_nvml_libnvml_a_CFLAGS = $(AM_CFLAGS) -Wno-missing-prototypes
wslib_PROGRAMS += frontend/libwattshare-nvml.so
frontend_libwattshare_nvml_so_SOURCES = frontend/nvml/nvml.h
frontend_libwattshare_nvml_so_LDFLAGS = $(AM_LDFLAGS) -shared -Wl,-soname,libnvidia-ml.so.1 \
	-Wl,-z,relro -Wl,-z,now -Wl,-Bsymbolic \
	-Wl,--version-script,$(top_srcdir)/frontend/nvml/nvml.map \
	-Wl,--whole-archive,frontend/nvml/libnvml.a,--no-whole-archive
frontend_libwattshare_nvml_so_LDADD = protocol/libprotocol.a base/libbase.a $(PROTOBUF_C_LIBS) -lpthread
frontend_libwattshare_nvml_so_DEPENDENCIES = frontend/nvml/libnvml.a base/libbase.a \
	protocol/libprotocol.a $(top_srcdir)/frontend/nvml/nvml.map
EXTRA_DIST += frontend/nvml/nvml.map frontend/nvml/README.md
