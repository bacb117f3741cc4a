# the interpreter: exec.h. The vector core is compiled once for each vector width.
# ThreadSanitizer leaves it out: what it touches is kernels' memory, whose races are the kernels'
# own, ordered by fences, which ThreadSanitizer does not know.
# Checks that ask at every lane whether a row is there would make the sanitized build take minutes;
# rows are asked once, by ASan.
device_libdevice_a_SOURCES += device/soft/exec/exec.h device/soft/exec/priv.h \
	device/soft/exec/image.h device/soft/exec/code.c device/soft/exec/block.c \
	device/soft/exec/list.inc device/soft/exec/ops.inc device/soft/exec/math.inc \
	device/soft/exec/core.inc device/soft/exec/mem.inc device/soft/exec/atom.inc \
	device/soft/exec/exec.c device/soft/exec/text.c device/soft/exec/reuse.h \
	device/soft/exec/reuse.c device/soft/decode/decode.c device/soft/decode/operand.c \
	device/soft/decode/priv.h device/soft/decode/dead.c device/soft/decode/util.h \
	device/soft/decode/insn.c device/soft/decode/machine.c device/soft/decode/half.c \
	device/soft/decode/cmp.c device/soft/decode/cvt.c device/soft/decode/mem.c \
	device/soft/decode/lane.h device/soft/decode/lane.c device/soft/decode/calls.c \
	device/soft/decode/flow.c device/soft/exec/tex.h device/soft/exec/tex.c \
	device/soft/exec/tex_srgb.inc device/soft/exec/tex.inc device/soft/exec/video.h \
	device/soft/exec/video.inc device/soft/exec/async.h device/soft/exec/async.c \
	device/soft/exec/tensor.h device/soft/exec/tensor.c \
	device/soft/exec/start.h device/soft/exec/start.c device/soft/decode/start.c \
	device/soft/decode/async.c device/soft/exec/matrix.h device/soft/exec/matrix.inc \
	device/soft/exec/matrix.c device/soft/decode/matrix.c device/soft/decode/tex.c \
	device/soft/decode/video.c
device_libdevice_a_SOURCES += device/soft/jit/jit.h device/soft/jit/jit.c device/soft/jit/code.h \
	device/soft/jit/compile.c device/soft/jit/tiers.c device/soft/jit/llvm.h \
	device/soft/jit/llvm.c device/soft/jit/plan.h device/soft/jit/plan.c \
	device/soft/jit/shape.h device/soft/jit/shape.c device/soft/jit/emit.h \
	device/soft/jit/emit.c device/soft/jit/rows.c device/soft/jit/ops.c device/soft/jit/mem.h \
	device/soft/jit/mem.c device/soft/jit/atoms.c device/soft/jit/warp.c device/soft/jit/blocks.c \
	device/soft/jit/pages.h device/soft/jit/pages.c device/soft/jit/link.h device/soft/jit/link.c \
	device/soft/jit/store.h device/soft/jit/store.c device/soft/jit/counts.c \
	device/soft/exec/turns.h device/soft/exec/turns.c device/soft/exec/asks.c \
	device/soft/exec/cluster.h device/soft/exec/cluster.c \
	device/soft/exec/shared.h
EXEC_CFLAGS = $(AM_CFLAGS) -ftree-vectorize $(WS_VECTOR_CFLAGS) -fno-trapping-math -fno-math-errno \
	-ffp-contract=off -fno-unsafe-math-optimizations \
	-fno-sanitize=null,alignment,object-size,pointer-overflow,thread
noinst_LIBRARIES += device/soft/libcore_sse2.a
device_soft_libcore_sse2_a_SOURCES = device/soft/exec/sse2.c
device_soft_libcore_sse2_a_CFLAGS = $(EXEC_CFLAGS)
EXEC_CORES = $(device_soft_libcore_sse2_a_OBJECTS)
if !SANITIZE
noinst_LIBRARIES += device/soft/libcore_avx2.a device/soft/libcore_avx512.a
EXEC_CORES += $(device_soft_libcore_avx2_a_OBJECTS) $(device_soft_libcore_avx512_a_OBJECTS)
endif
device_soft_libcore_avx2_a_SOURCES = device/soft/exec/avx2.c
device_soft_libcore_avx2_a_CFLAGS = $(EXEC_CFLAGS) -mavx2 -mfma
device_soft_libcore_avx512_a_SOURCES = device/soft/exec/avx512.c
device_soft_libcore_avx512_a_CFLAGS = $(EXEC_CFLAGS) -mavx2 -mfma -mavx512f -mavx512bw -mavx512dq \
	-mavx512vl -mprefer-vector-width=512
device_libdevice_a_LIBADD = $(EXEC_CORES)
device_libdevice_a_DEPENDENCIES = $(device_libdevice_a_LIBADD)
