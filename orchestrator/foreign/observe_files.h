/* What build scripts of cargo look at: the calls that open or ask about a file, each with its name written down.
 *
 * Part of observe.c, which says when `opened` names a file to write to. In every other process a call costs one
 * comparison more.
 */
#undef KNOWN
#define KNOWN(type, name, ...) static type (*real_##name)(__VA_ARGS__)
KNOWN(int, open, const char *, int, ...);
KNOWN(int, open64, const char *, int, ...);
KNOWN(int, openat, int, const char *, int, ...);
KNOWN(int, openat64, int, const char *, int, ...);
KNOWN(FILE *, fopen, const char *, const char *);
KNOWN(FILE *, fopen64, const char *, const char *);
KNOWN(int, stat, const char *, struct stat *);
KNOWN(int, stat64, const char *, struct stat64 *);
KNOWN(int, access, const char *, int);
KNOWN(int, statx, int, const char *, int, unsigned, struct statx *);

/* Before the constructors have run no symbol is looked up: an allocator may be at its first steps. */
static int open_early(int folder, const char *path, int flags, mode_t mode) {
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

__attribute__((constructor(101))) static void find_files(void) {
    FIND(open);
    FIND(open64);
    FIND(openat);
    FIND(openat64);
    FIND(fopen);
    FIND(fopen64);
    FIND(stat);
    FIND(stat64);
    FIND(access);
    FIND(statx);
}

/* Write down a name that a build script uses, in full. */
static void note(int folder, const char *name) {
    char line[2 * PATH_MAX + 2];
    size_t length = 0;
    if (!*opened || getpid() != observed || !name || !*name || strlen(name) >= PATH_MAX) return;
    if (*name != '/' && folder != AT_FDCWD) return;
    int error = errno;
    if (*name != '/' && getcwd(line, PATH_MAX)) {
        length = strlen(line);
        line[length++] = '/';
    }
    size_t size = strlen(name) + 1;
    memcpy(line + length, name, size);
    int file = real_open(opened, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file >= 0) {
        if (write(file, line, length + size) < 0) { /* what is not written down is not known */
        }
        close(file);
    }
    errno = error;
}

#define NOTED(name, folder, path) \
    if (!real_##name) find_files(); \
    note(folder, path)
#define MODE(flags, mode) \
    mode_t mode = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { \
        va_list more; \
        va_start(more, flags); \
        mode = va_arg(more, mode_t); \
        va_end(more); \
    }

int open(const char *path, int flags, ...) {
    MODE(flags, mode);
    if (!real_open) return open_early(AT_FDCWD, path, flags, mode);
    note(AT_FDCWD, path);
    return real_open(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE(flags, mode);
    if (!real_open64) return open_early(AT_FDCWD, path, flags, mode);
    note(AT_FDCWD, path);
    return real_open64(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
    MODE(flags, mode);
    if (!real_openat) return open_early(folder, path, flags, mode);
    note(folder, path);
    return real_openat(folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...) {
    MODE(flags, mode);
    if (!real_openat64) return open_early(folder, path, flags, mode);
    note(folder, path);
    return real_openat64(folder, path, flags, mode);
}

FILE *fopen(const char *restrict path, const char *restrict mode) {
    NOTED(fopen, AT_FDCWD, path);
    return real_fopen(path, mode);
}

FILE *fopen64(const char *restrict path, const char *restrict mode) {
    NOTED(fopen64, AT_FDCWD, path);
    return real_fopen64(path, mode);
}

int stat(const char *restrict path, struct stat *restrict status) {
    NOTED(stat, AT_FDCWD, path);
    return real_stat(path, status);
}

int stat64(const char *restrict path, struct stat64 *restrict status) {
    NOTED(stat64, AT_FDCWD, path);
    return real_stat64(path, status);
}

int access(const char *path, int mode) {
    NOTED(access, AT_FDCWD, path);
    return real_access(path, mode);
}

int statx(int folder, const char *restrict path, int flags, unsigned wanted, struct statx *restrict status) {
    NOTED(statx, folder, path);
    return real_statx(folder, path, flags, wanted, status);
}
