/*
 * Loaded before the C library, it lets the wall's clock jump and a disk fail for one process, as told by the file that
 * FAULTS_TOLD_BY names: two numbers of 64 bits, by how many milliseconds the clock is off, and the errno of every
 * write to a file, 0 for none.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct orders {
    volatile int64_t clock_off_ms;
    volatile int64_t write_fails;
};

static struct orders none;
static struct orders *orders = &none;
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite64)(int, const void *, size_t, off64_t);
static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
    real_write = dlsym(RTLD_NEXT, "write");
    real_pwrite64 = dlsym(RTLD_NEXT, "pwrite64");
    real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    const char *path = getenv("FAULTS_TOLD_BY");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *there = mmap(NULL, sizeof(struct orders), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (there != MAP_FAILED)
        orders = there;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    int failed = real_clock_gettime(clock, at);
    if (failed || clock != CLOCK_REALTIME)
        return failed;
    int64_t ns = at->tv_sec * 1000000000LL + at->tv_nsec + orders->clock_off_ms * 1000000LL;
    at->tv_sec = ns / 1000000000LL;
    at->tv_nsec = ns % 1000000000LL;
    return 0;
}

/* Logs go to the first three; sockets and pipes are no disk. */
static int fails(int file) {
    struct stat it;
    if (!orders->write_fails || file <= 2 || fstat(file, &it) != 0 || !S_ISREG(it.st_mode))
        return 0;
    errno = (int)orders->write_fails;
    return 1;
}

ssize_t write(int file, const void *bytes, size_t count) {
    return fails(file) ? -1 : real_write(file, bytes, count);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) {
    return fails(file) ? -1 : real_pwrite64(file, bytes, count, at);
}
