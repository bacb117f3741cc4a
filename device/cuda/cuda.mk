# A real GPU: device.h by NVIDIA's driver, which is opened at run time.
device_libdevice_a_SOURCES += device/cuda/cuda.h device/cuda/cuda_private.h device/cuda/cuda.c \
    device/cuda/driver.h device/cuda/driver_numbers.h device/cuda/driver.c \
    device/cuda/spec.c device/cuda/clock.c device/cuda/nvml.h device/cuda/nvml.c \
    device/cuda/clocks.h device/cuda/clocks.c \
    device/cuda/memory.h device/cuda/memory.c device/cuda/keep.h device/cuda/piece.c \
    device/cuda/code.h device/cuda/module.c device/cuda/unload.c device/cuda/bake.c \
    device/cuda/machine.c \
    device/cuda/run.h device/cuda/run.c device/cuda/stock.c device/cuda/copy.c device/cuda/launch.c \
    device/cuda/carry.c device/cuda/fence.c device/cuda/devlib.c device/cuda/green.c
EXTRA_DIST += device/cuda/README.md
