# CUDA workloads (tests/cuda/README.md). C clients are always built for `make check`; nvcc's
# programs where there is an nvcc.
CUDA_DRIVER_WORKLOADS = matmul aes sort search blackscholes montecarlo histogram stencil
CUDA_WORKLOADS = $(CUDA_DRIVER_WORKLOADS) reduce saxpy
include tests/cuda/programs.mk

# They stand for other people's programs: no sanitizer, no -fvisibility, nothing of ours linked in.
CUDA_CFLAGS = -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare
CUDA_CPPFLAGS = -DPTX_DIR='"$(abs_top_srcdir)/tests/cuda/ptx"'
CUDA_DRV = tests/cuda/drv.h tests/cuda/drv.c tests/cuda/work.h
# What a program that needs the driver is linked with: its SONAME, and functions that do nothing.
# Never loaded.
check_PROGRAMS += tests/cuda/libcuda_stub.so
tests_cuda_libcuda_stub_so_SOURCES = tests/cuda/libcuda_stub.c tests/cuda/drv.h
tests_cuda_libcuda_stub_so_CFLAGS = $(CUDA_CFLAGS) -fPIC
tests_cuda_libcuda_stub_so_LDFLAGS =
tests_cuda_libcuda_stub_so_LINK = $(CC) $(CFLAGS) -shared -Wl,-soname,libcuda.so.1 -o $@
CUDA_STUB_LDADD = tests/cuda/libcuda_stub.so -lm

CUDA_CLIENTS = tests/cuda/drv_matmul tests/cuda/drv_aes tests/cuda/drv_sort tests/cuda/drv_search \
	tests/cuda/drv_blackscholes tests/cuda/drv_montecarlo tests/cuda/drv_histogram \
	tests/cuda/drv_stencil tests/cuda/drv_fault tests/cuda/drv_endless tests/cuda/drv_badptx
CUDA_CLIENTS += tests/cuda/drv_graph tests/cuda/drv_prefork
tests_cuda_drv_prefork_SOURCES = tests/cuda/drv_prefork.c tests/cuda/drv_load_dlsym.c $(CUDA_DRV)
tests_cuda_drv_prefork_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_prefork_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_prefork_LDFLAGS =
tests_cuda_drv_prefork_LDADD = -ldl -lm
check_PROGRAMS += $(CUDA_CLIENTS)
tests_cuda_drv_graph_SOURCES = tests/cuda/drv_graph.c tests/cuda/drv_load_dlsym.c $(CUDA_DRV)
tests_cuda_drv_graph_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_graph_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_graph_LDFLAGS =
tests_cuda_drv_graph_LDADD = -ldl -lm
tests_cuda_drv_matmul_SOURCES = tests/cuda/drv_matmul.c tests/cuda/matmul.h \
	tests/cuda/drv_load_link.c $(CUDA_DRV)
tests_cuda_drv_matmul_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_matmul_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_matmul_LDFLAGS =
tests_cuda_drv_matmul_LDADD = $(CUDA_STUB_LDADD)
tests_cuda_drv_aes_SOURCES = tests/cuda/drv_aes.c tests/cuda/aes.h tests/cuda/drv_load_dlsym.c $(CUDA_DRV)
tests_cuda_drv_aes_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_aes_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_aes_LDFLAGS =
tests_cuda_drv_aes_LDADD = -ldl -lm
tests_cuda_drv_sort_SOURCES = tests/cuda/drv_sort.c tests/cuda/sort.h \
	tests/cuda/drv_load_getproc.c $(CUDA_DRV)
tests_cuda_drv_sort_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_sort_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_sort_LDFLAGS =
tests_cuda_drv_sort_LDADD = -ldl -lm
tests_cuda_drv_search_SOURCES = tests/cuda/drv_search.c tests/cuda/search.h \
	tests/cuda/drv_load_dlsym.c $(CUDA_DRV)
tests_cuda_drv_search_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_search_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_search_LDFLAGS =
tests_cuda_drv_search_LDADD = -ldl -lm
tests_cuda_drv_blackscholes_SOURCES = tests/cuda/drv_blackscholes.c tests/cuda/blackscholes.h \
	tests/cuda/drv_load_link.c $(CUDA_DRV)
tests_cuda_drv_blackscholes_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_blackscholes_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_blackscholes_LDFLAGS =
tests_cuda_drv_blackscholes_LDADD = $(CUDA_STUB_LDADD)
tests_cuda_drv_montecarlo_SOURCES = tests/cuda/drv_montecarlo.c tests/cuda/montecarlo.h \
	tests/cuda/drv_load_getproc.c $(CUDA_DRV)
tests_cuda_drv_montecarlo_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_montecarlo_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_montecarlo_LDFLAGS =
tests_cuda_drv_montecarlo_LDADD = -ldl -lm
tests_cuda_drv_histogram_SOURCES = tests/cuda/drv_histogram.c tests/cuda/histogram.h \
	tests/cuda/drv_load_dlsym.c $(CUDA_DRV)
tests_cuda_drv_histogram_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_histogram_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_histogram_LDFLAGS =
tests_cuda_drv_histogram_LDADD = -ldl -lm
tests_cuda_drv_stencil_SOURCES = tests/cuda/drv_stencil.c tests/cuda/stencil.h \
	tests/cuda/drv_load_link.c $(CUDA_DRV)
tests_cuda_drv_stencil_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_stencil_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_stencil_LDFLAGS =
tests_cuda_drv_stencil_LDADD = $(CUDA_STUB_LDADD)
tests_cuda_drv_fault_SOURCES = tests/cuda/drv_fault.c tests/cuda/fault.h \
	tests/cuda/drv_load_dlsym.c $(CUDA_DRV)
tests_cuda_drv_fault_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_fault_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_fault_LDFLAGS =
tests_cuda_drv_fault_LDADD = -ldl -lm
tests_cuda_drv_endless_SOURCES = tests/cuda/drv_endless.c tests/cuda/drv_load_dlsym.c $(CUDA_DRV)
tests_cuda_drv_endless_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_endless_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_endless_LDFLAGS =
tests_cuda_drv_endless_LDADD = -ldl -lm
tests_cuda_drv_badptx_SOURCES = tests/cuda/drv_badptx.c tests/cuda/drv_load_dlsym.c $(CUDA_DRV)
tests_cuda_drv_badptx_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_badptx_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_badptx_LDFLAGS =
tests_cuda_drv_badptx_LDADD = -ldl -lm
check_PROGRAMS += tests/cuda/drv_overrun
tests_cuda_drv_overrun_SOURCES = tests/cuda/drv_overrun.c tests/cuda/drv_load_dlsym.c $(CUDA_DRV)
tests_cuda_drv_overrun_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_overrun_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_overrun_LDFLAGS =
tests_cuda_drv_overrun_LDADD = -ldl -lm
check_PROGRAMS += tests/cuda/drv_check
tests_cuda_drv_check_SOURCES = tests/cuda/drv_check.c tests/cuda/drv_load_dlsym.c $(CUDA_DRV)
tests_cuda_drv_check_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_check_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_check_LDFLAGS =
tests_cuda_drv_check_LDADD = -ldl -lm
check_PROGRAMS += tests/cuda/drv_texref
tests_cuda_drv_texref_SOURCES = tests/cuda/drv_texref.c tests/cuda/drv_load_dlsym.c $(CUDA_DRV)
tests_cuda_drv_texref_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_texref_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_texref_LDFLAGS =
tests_cuda_drv_texref_LDADD = -ldl -lm

CUDA_PTX = tests/cuda/ptx/matmul.ptx tests/cuda/ptx/aes.ptx tests/cuda/ptx/sort.ptx \
	tests/cuda/ptx/search.ptx tests/cuda/ptx/blackscholes.ptx tests/cuda/ptx/montecarlo.ptx \
	tests/cuda/ptx/histogram.ptx tests/cuda/ptx/stencil.ptx tests/cuda/ptx/fault.ptx
EXTRA_DIST += tests/cuda/mathcheck.cuh tests/cuda/mathcheck.inc
EXTRA_DIST += $(CUDA_PTX) tests/cuda/README.md tests/cuda/work.cuh tests/cuda/matmul.cu \
	tests/cuda/aes.cu tests/cuda/sort.cu tests/cuda/search.cu tests/cuda/blackscholes.cu \
	tests/cuda/montecarlo.cu tests/cuda/histogram.cu tests/cuda/stencil.cu \
	tests/cuda/reduce.cu tests/cuda/saxpy.cu tests/cuda/fault.cu
EXTRA_DIST += tests/cuda/programs.mk $(CUDA_PROGRAM_NAMES:%=tests/cuda/%.cu)

# Ordinary flags: nvcc's default machine code and PTX; the same object is linked with the static and
# the shared runtime.
NVCCFLAGS = -O2 -Wno-deprecated-gpu-targets
# What stands before nvcc where one file is compiled: "make check NVCC_CACHE=ccache". Thrust and CUB
# take it a minute each.
NVCC_CACHE =
if HAVE_NVCC
CUDA_NVCC_NAMES = $(CUDA_WORKLOADS) fault $(CUDA_PROGRAM_NAMES)
# These take minutes: they are begun first, so that none is left alone at the end.
CUDA_NVCC_SLOW = thrusting cubs
CUDA_NVCC_BUILT = $(CUDA_NVCC_SLOW:%=tests/cuda/nv/%_static) \
	$(CUDA_NVCC_NAMES:%=tests/cuda/nv/%_static) $(CUDA_NVCC_NAMES:%=tests/cuda/nv/%_shared)
endif
check_DATA = $(CUDA_NVCC_BUILT)
CLEANFILES += $(CUDA_NVCC_BUILT) $(CUDA_NVCC_NAMES:%=tests/cuda/nv/%.o)
.SECONDARY: $(CUDA_NVCC_NAMES:%=tests/cuda/nv/%.o)
CUDA_WORKLOAD_H = tests/cuda/work.cuh tests/cuda/work.h $(CUDA_DRIVER_WORKLOADS:%=tests/cuda/%.h) \
	tests/cuda/fault.h
tests/cuda/nv/%.o: tests/cuda/%.cu $(CUDA_WORKLOAD_H)
	$(AM_V_GEN)$(MKDIR_P) tests/cuda/nv && $(NVCC_CACHE) $(NVCC) $(NVCCFLAGS) -c -o $@ $<
tests/cuda/nv/mathf.o tests/cuda/nv/mathd.o: tests/cuda/mathcheck.cuh tests/cuda/mathcheck.inc
tests/cuda/nv/thrusting.o tests/cuda/nv/cubs.o: NVCCFLAGS += --extended-lambda
# half functions that older architectures lack
tests/cuda/nv/halves.o: NVCCFLAGS += -arch=compute_80
tests/cuda/nv/periodic.o: frontend/wattshare.h
tests/cuda/nv/perthread.o: NVCCFLAGS += -default-stream per-thread
# multicast copies are for 9.0a
tests/cuda/nv/clusters.o: NVCCFLAGS += -gencode arch=compute_90a,code=compute_90a
tests/cuda/nv/asynccopy.o: NVCCFLAGS += -gencode arch=compute_80,code=compute_80
tests/cuda/nv/%_static: tests/cuda/nv/%.o
	$(AM_V_GEN)$(NVCC) $(NVCCFLAGS) -cudart static -o $@ $<
tests/cuda/nv/%_shared: tests/cuda/nv/%.o
	$(AM_V_GEN)$(NVCC) $(NVCCFLAGS) -cudart shared -o $@ $<

# Writes the committed PTX anew, after a kernel was changed.
.PHONY: cuda-ptx
cuda-ptx:
	cd $(top_srcdir) && for p in $(CUDA_PTX); do n=$$(basename $$p .ptx); \
	  $(NVCC) -ptx -arch=compute_75 -o $$p tests/cuda/$$n.cu || exit 1; done

# On which SMs blocks run (tests/process/profile.sh).
check_PROGRAMS += tests/cuda/drv_smids
tests_cuda_drv_smids_SOURCES = tests/cuda/drv_smids.c tests/cuda/drv_load_dlsym.c $(CUDA_DRV)
tests_cuda_drv_smids_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_smids_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_smids_LDFLAGS =
tests_cuda_drv_smids_LDADD = -ldl -lm
EXTRA_DIST += tests/cuda/ptx/smids.ptx

# Machine code alone: a cubin with names and no code, and nvcc's for these GPUs (8.6 is the mock's),
# with the PTX that the mock runs.
check_PROGRAMS += tests/cuda/drv_machine
tests_cuda_drv_machine_SOURCES = tests/cuda/drv_machine.c tests/cuda/drv_load_dlsym.c $(CUDA_DRV) \
	$(CUBIN_MAKE)
tests_cuda_drv_machine_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_machine_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_machine_LDFLAGS =
tests_cuda_drv_machine_LDADD = -ldl -lm
EXTRA_DIST += tests/cuda/sassonly.cu
if HAVE_NVCC
CUDA_SASS_ONLY = tests/cuda/nv/sassonly_static tests/cuda/nv/sassonly_shared
CUDA_SASS_BUILT = $(CUDA_SASS_ONLY) tests/cuda/nv/sassonly.ptx
check_DATA += $(CUDA_SASS_BUILT)
CLEANFILES += $(CUDA_SASS_BUILT) tests/cuda/nv/sassonly.o
endif
tests/cuda/nv/sassonly.o: NVCCFLAGS += -gencode arch=compute_75,code=sm_75 -gencode arch=compute_80,code=sm_80 \
	-gencode arch=compute_86,code=sm_86 -gencode arch=compute_90,code=sm_90 -gencode arch=compute_100,code=sm_100 \
	-gencode arch=compute_120,code=sm_120
tests/cuda/nv/sassonly.ptx: tests/cuda/sassonly.cu $(CUDA_WORKLOAD_H)
	$(AM_V_GEN)$(MKDIR_P) tests/cuda/nv && $(NVCC) -O2 -ptx -arch=compute_86 -o $@ $<

# What programs see of launches and copies (tests/gpu/overhead.sh).
check_PROGRAMS += tests/cuda/drv_rates
tests_cuda_drv_rates_SOURCES = tests/cuda/drv_rates.c tests/cuda/matmul.h \
	tests/cuda/drv_load_dlsym.c $(CUDA_DRV)
tests_cuda_drv_rates_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_rates_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_rates_LDFLAGS =
tests_cuda_drv_rates_LDADD = -ldl -lm
# cuBLAS, opened at run time (tests/gpu/gate.sh).
check_PROGRAMS += tests/gpu/cublas
tests_gpu_cublas_SOURCES = tests/gpu/cublas.c
tests_gpu_cublas_CFLAGS = $(CUDA_CFLAGS)
tests_gpu_cublas_LDFLAGS =
tests_gpu_cublas_LDADD = -ldl

# Jobs that a program marks itself (tests/process/tasks.sh).
check_PROGRAMS += tests/cuda/drv_segments
tests_cuda_drv_segments_SOURCES = tests/cuda/drv_segments.c tests/cuda/drv_load_dlsym.c $(CUDA_DRV)
tests_cuda_drv_segments_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_segments_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_segments_LDFLAGS =
tests_cuda_drv_segments_LDADD = -ldl -lm
# For the gate: tests/process/gate.sh, bench/gate.sh.
CUDA_GATE = tests/cuda/drv_gate
check_PROGRAMS += $(CUDA_GATE)
tests_cuda_drv_gate_SOURCES = tests/cuda/drv_gate.c tests/cuda/matmul.h \
	tests/cuda/drv_load_dlsym.c $(CUDA_DRV)
tests_cuda_drv_gate_CFLAGS = $(CUDA_CFLAGS)
tests_cuda_drv_gate_CPPFLAGS = $(CUDA_CPPFLAGS)
tests_cuda_drv_gate_LDFLAGS =
tests_cuda_drv_gate_LDADD = -ldl -lm -lpthread
