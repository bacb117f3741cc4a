# the software GPU: device.h
