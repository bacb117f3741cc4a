// SPDX-License-Identifier: Apache-2.0
/* frontend/context/attributes.h - attributes and properties of a device and of a stream, as CUDA
 * numbers and names them. Threads: any. */
#ifndef WS_FRONTEND_CONTEXT_ATTRIBUTES_H
#define WS_FRONTEND_CONTEXT_ATTRIBUTES_H

#include <stdbool.h>
#include "frontend/cuda_device_prop.h"
#include "frontend/cuda_types.h"
#include "frontend/session/session.h"

/* cudaDevAttr… = CU_DEVICE_ATTRIBUTE_…: WS_ATTR_ and the driver's name. */
enum {
#define WS_DEVICE_ATTRIBUTE(number, name, value) WS_ATTR_##name = number,
#include "frontend/context/device_attributes.def"
#undef WS_DEVICE_ATTRIBUTE
};
enum { WS_PITCH_ALIGNMENT = 512, WS_PRIORITY_LEAST = 0, WS_PRIORITY_GREATEST = -5 };
/* The value of an attribute. Return: false if CUDA has no attribute of this number. */
bool ws_device_attribute(const Ws__Device *d, int attribute, int *ret);
/* "0000:01:00.0"; @text: at least 13 bytes. */
void ws_device_pci_id(const Ws__Device *d, char *text, size_t bytes);
/* cudaStreamAttr… = CU_STREAM_ATTRIBUTE_…: those there are, and what a stream answers. */
bool ws_stream_attribute_known(int attribute);
void ws_stream_attribute(int attribute, int priority, union cuda_launch_attribute_value *ret);
void ws_device_prop(const Ws__Device *d, struct cuda_device_prop *ret);
void ws_device_prop_12(const Ws__Device *d, struct cuda_device_prop_12 *ret);

#endif
