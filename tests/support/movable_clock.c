/* Sets the time of day ahead by the number of seconds in the file MOVABLE_CLOCK, which is read with every call. Allocates
   no memory, because allocators ask for the time before anything else is initialized. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int file = -1;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("MOVABLE_CLOCK");
    file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

static long long ahead(void) {
    char text[24];
    long long seconds = 0;
    ssize_t size = file < 0 ? 0 : syscall(SYS_pread64, file, text, sizeof text, 0L);
    for (ssize_t at = 0; at < size && text[at] >= '0' && text[at] <= '9'; at++) {
        seconds = seconds * 10 + (text[at] - '0');
    }
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (failed == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        now->tv_sec += ahead();
    }
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec time;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &time)) {
        return -1;
    }
    now->tv_sec = time.tv_sec;
    now->tv_usec = time.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *to) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to) {
        *to = now.tv_sec;
    }
    return now.tv_sec;
}
