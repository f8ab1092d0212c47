/* Makes fsync and fdatasync take SHIM_SYNC_MILLIS longer, and not return while the file SHIM_SYNC_HANG exists. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void wait_first(void) {
    const char *millis = getenv("SHIM_SYNC_MILLIS"), *hang = getenv("SHIM_SYNC_HANG");
    if (millis) {
        usleep(1000 * (useconds_t)atoi(millis));
    }
    while (hang && access(hang, F_OK) == 0) {
        usleep(10000);
    }
}

int fsync(int fd) {
    wait_first();
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
    wait_first();
    return (int)syscall(SYS_fdatasync, fd);
}
