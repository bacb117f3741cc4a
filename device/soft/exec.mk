# the interpreter: exec.h. The vector core is compiled once for each vector width.
# ThreadSanitizer leaves it out: what it touches is kernels' memory, whose races are the kernels' own, ordered by fences, which
# ThreadSanitizer does not know.
# Checks that ask at every lane whether a row is there would make the sanitized build take minutes; rows are asked once, by ASan.
device_libdevice_a_SOURCES += device/soft/exec.h device/soft/exec_priv.h device/soft/exec_list.inc device/soft/exec_ops.inc \
    device/soft/exec_math.inc device/soft/exec_core.inc device/soft/exec_mem.inc device/soft/exec_atom.inc device/soft/exec.c device/soft/exec_text.c device/soft/decode.c \
    device/soft/decode_priv.h device/soft/decode_dead.c device/soft/decode_util.h device/soft/decode_insn.c device/soft/decode_half.c \
    device/soft/decode_cmp.c device/soft/decode_cvt.c device/soft/decode_mem.c device/soft/lane.h device/soft/lane.c device/soft/decode_flow.c \
    device/soft/exec_tex.h device/soft/exec_tex.c device/soft/exec_tex_srgb.inc device/soft/exec_tex.inc device/soft/exec_video.h device/soft/exec_video.inc \
    device/soft/exec_async.h device/soft/exec_async.c device/soft/decode_async.c device/soft/exec_matrix.h device/soft/exec_matrix.c device/soft/decode_matrix.c device/soft/decode_tex.c device/soft/decode_video.c
EXEC_CFLAGS = $(AM_CFLAGS) -ftree-vectorize -fpeel-loops -fvect-cost-model=dynamic -fno-trapping-math -fno-math-errno -ffp-contract=off \
    -fno-unsafe-math-optimizations -fno-sanitize=null,alignment,object-size,pointer-overflow,thread
noinst_LIBRARIES += device/soft/libcore_sse2.a device/soft/libcore_avx2.a device/soft/libcore_avx512.a
device_soft_libcore_sse2_a_SOURCES = device/soft/exec_sse2.c
device_soft_libcore_sse2_a_CFLAGS = $(EXEC_CFLAGS)
device_soft_libcore_avx2_a_SOURCES = device/soft/exec_avx2.c
device_soft_libcore_avx2_a_CFLAGS = $(EXEC_CFLAGS) -mavx2 -mfma
device_soft_libcore_avx512_a_SOURCES = device/soft/exec_avx512.c
device_soft_libcore_avx512_a_CFLAGS = $(EXEC_CFLAGS) -mavx2 -mfma -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512
device_libdevice_a_LIBADD = $(device_soft_libcore_sse2_a_OBJECTS) $(device_soft_libcore_avx2_a_OBJECTS) \
    $(device_soft_libcore_avx512_a_OBJECTS)
device_libdevice_a_DEPENDENCIES = $(device_libdevice_a_LIBADD)
