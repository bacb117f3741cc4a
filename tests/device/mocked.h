/* SPDX-License-Identifier: Apache-2.0 */
/* tests/device/mocked.h - for tests of the device that know the mock driver: what they ask it and
 * tell it (tests/mock/mock.h says what each function does). */
#ifndef WS_TESTS_DEVICE_MOCKED_H
#define WS_TESTS_DEVICE_MOCKED_H

#include <stdbool.h>
#include <stdint.h>

struct mocked {
    uint32_t (*violations)(const char **ret_first);
    uint64_t (*calls)(const char *name);
    int (*fail_call)(const char *name, uint64_t nth, int code);
    void (*reset)(void);
    void (*hold)(bool on);
    void (*hold_copies)(bool on);
    void (*advance)(uint64_t ns);
    void (*watch)(void (*f)(const char *name, bool behind));
    void (*waits)(const char *groups);
};
extern struct mocked mock;

/* Opens the mock driver that the command line names, PROGRAM DRIVER NVML, and makes it the suite's
 * target as "cuda". The driver stays open, so its counts outlive each device. Return: false: the
 * usage is wrong, or it is not the mock driver; which is printed. */
bool mocked_open(char **argv);
/* Unless @ok, prints the program's name and @text, and ends the program. */
void mocked_check(bool ok, const char *text);

#endif
