/* Preloaded into a process: its clock is three years behind. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sys/time.h>
#include <time.h>

static const long BEHIND = 3 * 365 * 86400L;

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec -= BEHIND;
    return failed;
}

time_t time(time_t *seconds) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (seconds) *seconds = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict then, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    then->tv_sec = now.tv_sec;
    then->tv_usec = now.tv_nsec / 1000;
    return 0;
}

/* A thread that waits until a time of this clock would not wait at all: for the kernel that is long past. Times of the
   monotonic clock count from the start of the machine, and are small. */
int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (!real) real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");  /* the oldest is another one */
    if (!real) real = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    struct timespec then = *until;
    if (then.tv_sec > BEHIND * 10) then.tv_sec += BEHIND;
    return real(condition, mutex, &then);
}
