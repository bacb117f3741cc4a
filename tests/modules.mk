# Programs about modules, kernels' output, properties and launches (tests/process/modules.sh).
# Single files are built as those of tests/cuda.mk; rdc and statics are of two files, rdc_lib takes
# the second from a static library.
MODULE_NAMES = printing overflow asserting devices occupancy launchattr
EXTRA_DIST += $(MODULE_NAMES:%=tests/cuda/%.cu) tests/cuda/printing.out tests/cuda/rdc.cuh \
	tests/cuda/rdc.cu tests/cuda/rdc_part.cu tests/cuda/statics.cu tests/cuda/statics_part.cu \
	tests/cuda/nvrtc.cu tests/cuda/logs.cu tests/cuda/jitlto.cu tests/cuda/cdp.cu
if HAVE_NVCC
MODULE_BUILT = $(MODULE_NAMES:%=tests/cuda/nv/%_static) $(MODULE_NAMES:%=tests/cuda/nv/%_shared) \
	tests/cuda/nv/rdc_static tests/cuda/nv/rdc_shared tests/cuda/nv/rdc_lib_static \
	tests/cuda/nv/rdc_part.o tests/cuda/nv/statics_static tests/cuda/nv/statics_shared \
	tests/cuda/nv/logs_static tests/cuda/nv/cdp_static \
	$(if $(call CUDA_HAS,nvrtc),tests/cuda/nv/nvrtc_static $(if $(call CUDA_HAS,nvJitLink),tests/cuda/nv/jitlto_static))
endif
# Some toolkits come without the compilers' libraries: then the programs that need them are neither
# built nor run.
CUDA_HAS = \
	$(firstword $(wildcard $(foreach d,$(dir $(NVCC))../lib64 /usr/lib/x86_64-linux-gnu,$(d)/lib$(1).so)))
check_DATA += $(MODULE_BUILT)
CLEANFILES += $(MODULE_BUILT) $(MODULE_NAMES:%=tests/cuda/nv/%.o) tests/cuda/nv/rdc_part.a
.SECONDARY: $(MODULE_NAMES:%=tests/cuda/nv/%.o)
CUDA_STUBS = $(dir $(NVCC))../lib64/stubs
MODULE_NVCC = $(AM_V_GEN)$(MKDIR_P) tests/cuda/nv && $(NVCC) $(NVCCFLAGS)
RDC = $(top_srcdir)/tests/cuda/rdc.cu $(top_srcdir)/tests/cuda/rdc_part.cu
tests/cuda/nv/rdc_static tests/cuda/nv/rdc_shared: tests/cuda/rdc.cu tests/cuda/rdc_part.cu tests/cuda/rdc.cuh
	$(MODULE_NVCC) -rdc=true -cudart $(@:tests/cuda/nv/rdc_%=%) -o $@ $(RDC)
tests/cuda/nv/rdc_part.a: tests/cuda/rdc_part.cu tests/cuda/rdc.cuh
	$(MODULE_NVCC) -rdc=true -lib -o $@ $(top_srcdir)/tests/cuda/rdc_part.cu
tests/cuda/nv/rdc_part.o: tests/cuda/rdc_part.cu tests/cuda/rdc.cuh
	$(MODULE_NVCC) -dc -o $@ $(top_srcdir)/tests/cuda/rdc_part.cu
tests/cuda/nv/rdc_lib_static: tests/cuda/rdc.cu tests/cuda/nv/rdc_part.a
	$(MODULE_NVCC) -rdc=true -o $@ $(top_srcdir)/tests/cuda/rdc.cu tests/cuda/nv/rdc_part.a
tests/cuda/nv/statics_static tests/cuda/nv/statics_shared: tests/cuda/statics.cu tests/cuda/statics_part.cu
	$(MODULE_NVCC) -cudart $(@:tests/cuda/nv/statics_%=%) -o $@ $(top_srcdir)/tests/cuda/statics.cu \
	  $(top_srcdir)/tests/cuda/statics_part.cu
tests/cuda/nv/nvrtc_static: tests/cuda/nvrtc.cu
	$(MODULE_NVCC) -o $@ $(top_srcdir)/tests/cuda/nvrtc.cu -lnvrtc -lcuda -L$(CUDA_STUBS)
tests/cuda/nv/logs_static: tests/cuda/logs.cu
	$(MODULE_NVCC) -o $@ $(top_srcdir)/tests/cuda/logs.cu -lcuda -L$(CUDA_STUBS)
tests/cuda/nv/jitlto_static: tests/cuda/jitlto.cu
	$(MODULE_NVCC) -o $@ $(top_srcdir)/tests/cuda/jitlto.cu -lnvJitLink -lnvrtc -lcuda -L$(CUDA_STUBS)
tests/cuda/nv/cdp_static: tests/cuda/cdp.cu
	$(MODULE_NVCC) -rdc=true -o $@ $(top_srcdir)/tests/cuda/cdp.cu -lcudadevrt

check_PROGRAMS += tests/cuda/drv_link tests/cuda/drv_partial
tests_cuda_drv_link_SOURCES = tests/cuda/drv_link.c tests/cuda/drv_load_dlsym.c $(CUDA_DRV)
tests_cuda_drv_link_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_link_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_link_LDFLAGS =
tests_cuda_drv_link_LDADD = -ldl -lm
tests_cuda_drv_partial_SOURCES = tests/cuda/drv_partial.c tests/cuda/drv_load_dlsym.c $(CUDA_DRV)
tests_cuda_drv_partial_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_partial_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_partial_LDFLAGS =
tests_cuda_drv_partial_LDADD = -ldl -lm
check_PROGRAMS += tests/cuda/drv_starts
tests_cuda_drv_starts_SOURCES = tests/cuda/drv_starts.c tests/cuda/drv_load_dlsym.c $(CUDA_DRV)
tests_cuda_drv_starts_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_starts_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_starts_LDFLAGS =
tests_cuda_drv_starts_LDADD = -ldl -lm
check_PROGRAMS += tests/cuda/drv_linkfile
tests_cuda_drv_linkfile_SOURCES = tests/cuda/drv_linkfile.c tests/cuda/drv_load_dlsym.c $(CUDA_DRV)
tests_cuda_drv_linkfile_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_linkfile_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_linkfile_LDFLAGS =
tests_cuda_drv_linkfile_LDADD = -ldl -lm
check_PROGRAMS += tests/cuda/drv_ptxas
tests_cuda_drv_ptxas_SOURCES = tests/cuda/drv_ptxas.c tests/cuda/drv_load_dlsym.c $(CUDA_DRV)
tests_cuda_drv_ptxas_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_ptxas_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_ptxas_LDFLAGS =
tests_cuda_drv_ptxas_LDADD = -ldl -lm
check_PROGRAMS += tests/cuda/drv_tensor
tests_cuda_drv_tensor_SOURCES = tests/cuda/drv_tensor.c tests/cuda/drv_load_dlsym.c $(CUDA_DRV)
tests_cuda_drv_tensor_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_tensor_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_tensor_LDFLAGS =
tests_cuda_drv_tensor_LDADD = -ldl -lm
dist_check_SCRIPTS += tests/process/modules.sh
TESTS += tests/process/modules.sh
