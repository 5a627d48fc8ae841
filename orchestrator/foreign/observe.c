/* Observes a build from inside of each of its processes (LD_PRELOAD).
 *
 * Every dynamically linked program writes one record when it starts, with one write() to a log opened with
 * O_APPEND, so that records of parallel processes never mix:
 *
 *   "FPX1"  u32 size of what follows  then, each ended by NUL:
 *   pid, parent, start (ns since 1970), folder, program, number of words, words...,
 *   settings (NAME=value)..., files of further words (@N=content, for word N)...
 *
 * and one when it ends by itself: the same with pid, time and exit code only. Files of further words are kept
 * because builds remove them once they are used.
 *
 * GCC's compiler proper, where its command asks for no list of what it reads, is made to write one beside the log:
 * <log>.<pid>.<start>. The variable for that is set in its own process alone. It names an open file, so that a
 * compiler that goes on when the build is over and the log is gone finds it still.
 *
 * A build script of cargo decides by what it reads how others are called, so the names that it opens or asks about
 * are written to <log>.<pid>.<start>.opened, each ended by NUL.
 *
 * An nvcc that ends well and finds <log>.stamps, where the process that records listens, sends its first record
 * there and waits until that process is done with what nvcc made. Whatever becomes of that, nvcc ends as it does.
 *
 * A linker that ends well gives what it read and wrote in folders of temporary files a further name,
 * <log>.kept.<pid>.<word>: setuptools builds there for `pip install -e`, and removes it all.
 *
 * Programs that start others with an environment of their own choice (env -i, sandboxes) get the two
 * variables that keep the observer loaded put back. Nothing else of the build is touched.
 */
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LOG "FRESHPROOF_OBSERVER_LOG"
#define LIBRARY "FRESHPROOF_OBSERVER"

#define MOST_WORDS_IN_FILES (16 << 20)
#define UNKNOWN_CODE (-1)
#define PATIENCE_S 60

static char log_setting[PATH_MAX + 64];
static char library[PATH_MAX];
static pid_t observed;
static char *sent; /* nvcc's first record, to be sent when it ends */
static size_t sent_size;
static char **linked; /* the words of a linker */
static int linked_count;
static char opened[PATH_MAX + 64]; /* where names go that this process opens; empty for most */

extern int on_exit(void (*)(int, void *), void *) __attribute__((weak)); /* not in every C library */

static const char *const settings[] = {
#include "settings.inc"
};

static int begins(const char *text, const char *start) { return strncmp(text, start, strlen(start)) == 0; }

static int is_wanted(const char *setting) {
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        size_t length = strlen(settings[i]);
        if (strncmp(setting, settings[i], length) == 0 && setting[length] == '=') return 1;
    }
    return 0;
}

struct text {
    char *at, *end;
};

static void add(struct text *to, const char *word) {
    size_t size = strlen(word) + 1;
    if ((size_t)(to->end - to->at) < size) return;
    memcpy(to->at, word, size);
    to->at += size;
}

static void add_number(struct text *to, uint64_t number) {
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    add(to, digits);
}

/* The file of further words that a word stands for: `@file` of most tools, an option's value of nvcc. */
static const char *words_file(int argc, char **argv, int i) {
    if (i < 1 || i >= argc) return NULL;
    if (argv[i][0] == '@' && argv[i][1]) return argv[i] + 1;
    if (begins(argv[i], "-optf=")) return argv[i] + sizeof "-optf=" - 1;
    if (begins(argv[i], "--options-file=")) return argv[i] + sizeof "--options-file=" - 1;
    return strcmp(argv[i - 1], "-optf") && strcmp(argv[i - 1], "--options-file") ? NULL : argv[i];
}

static size_t size_of_words(int argc, char **argv) {
    size_t size = 0;
    for (int i = 1; i < argc; i++) {
        const char *name = words_file(argc, argv, i);
        struct stat status;
        if (name && !stat(name, &status) && S_ISREG(status.st_mode)) size += (size_t)status.st_size + 32;
        if (size > MOST_WORDS_IN_FILES) return 0;
    }
    return size;
}

/* All of a file or nothing of it: the reader notices what is missing. */
static void add_words(struct text *to, int number, const char *name) {
    char *start = to->at, label[32];
    struct stat status;
    int file = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return;
    if (!fstat(file, &status) && S_ISREG(status.st_mode)) {
        size_t size = (size_t)status.st_size;
        int length = snprintf(label, sizeof label, "@%d=", number);
        if ((size_t)(to->end - start) > size + (size_t)length) {
            memcpy(start, label, (size_t)length);
            ssize_t got = read(file, start + length, size);
            if (got == (ssize_t)size && !memchr(start + length, 0, size)) {
                start[(size_t)length + size] = 0;
                to->at = start + (size_t)length + size + 1;
            }
        }
    }
    close(file);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now); /* never behind a file written before, whose time is that of a tick */
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void append(const char *path, char *record, char *end) {
    uint32_t body = (uint32_t)(end - record - 8);
    memcpy(record, "FPX1", 4);
    memcpy(record + 4, &body, 4);
    int log = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (log < 0) return;
    if (write(log, record, body + 8) < 0) { /* the reader notices what is torn or missing */
    }
    close(log);
}

static void ask_for_list(const char *path, const char *program, int argc, char **argv, uint64_t start) {
    char name[PATH_MAX + 64];
    const char *tool = strrchr(program, '/');
    if (!tool || (strcmp(tool, "/cc1plus") && strcmp(tool, "/cc1"))) return;
    if (getenv("DEPENDENCIES_OUTPUT") || getenv("SUNPRO_DEPENDENCIES")) return;
    for (int i = 1; i < argc; i++)
        if (begins(argv[i], "-M") || !strcmp(argv[i], "-E") || !strcmp(argv[i], "-fpreprocessed")) return;
    snprintf(name, sizeof name, "%s.%d.%llu", path, (int)getpid(), (unsigned long long)start);
    int file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return;
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    setenv("SUNPRO_DEPENDENCIES", name, 1);
}

/* The linker proper, by whatever name it is installed. */
static int is_linker(const char *tool) {
    const char *target = tool ? strrchr(tool, '-') : NULL;
    const char *name = target ? target + 1 : tool ? tool + 1 : "";
    return !strcmp(name, "ld") || begins(name, "ld.") || !strcmp(name, "lld") || !strcmp(name, "mold");
}

static void write_start(const char *path, int argc, char **argv, char **envp) {
    char folder[PATH_MAX], program[PATH_MAX];
    size_t size = 2 * PATH_MAX + 256;
    for (int i = 0; i < argc; i++) size += strlen(argv[i]) + 1;
    for (char **e = envp; *e; e++) size += is_wanted(*e) ? strlen(*e) + 1 : 0;
    size_t in_files = size_of_words(argc, argv);
    char *record = malloc(size += in_files);
    if (!record) return;

    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = 0;
    struct text to = {record + 8, record + size};
    add_number(&to, (uint64_t)getpid());
    add_number(&to, (uint64_t)getppid());
    uint64_t start = now_ns();
    add_number(&to, start);
    add(&to, getcwd(folder, sizeof folder) ? folder : "");
    add(&to, program);
    add_number(&to, (uint64_t)argc);
    for (int i = 0; i < argc; i++) add(&to, argv[i]);
    for (char **e = envp; *e; e++)
        if (is_wanted(*e)) add(&to, *e);
    for (int i = 1; in_files && i < argc; i++) {
        const char *name = words_file(argc, argv, i);
        if (name) add_words(&to, i, name);
    }
    append(path, record, to.at);
    const char *tool = strrchr(program, '/');
    if (tool && (begins(tool, "/build-script-") || begins(tool, "/build_script_")))
        snprintf(opened, sizeof opened, "%s.%d.%llu.opened", path, (int)getpid(), (unsigned long long)start);
    if (tool && !strcmp(tool, "/nvcc"))
        sent = record, sent_size = (size_t)(to.at - record);
    else
        free(record);
    if (is_linker(tool)) linked = argv, linked_count = argc;
    ask_for_list(path, program, argc, argv, start);
}

static void let_stamp(void) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct timeval patience = {PATIENCE_S, 0};
    char done;
    int length = snprintf(to.sun_path, sizeof to.sun_path, "%s.stamps", log_setting + sizeof LOG);
    int line = length < (int)sizeof to.sun_path ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    if (line < 0) return;
    setsockopt(line, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(line, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (!connect(line, (struct sockaddr *)&to, sizeof to) &&
        send(line, sent, sent_size, MSG_NOSIGNAL) == (ssize_t)sent_size && read(line, &done, 1) < 0) {
        /* it took too long, and closing the line says so */
    }
    close(line);
}

/* A further name for each file of folders of temporary ones that a link read or wrote, beside the log, with a link
 * to its first name: some builds remove them before the build is over. */
static void keep(void) {
    char name[PATH_MAX + 96], of[PATH_MAX + 112];
    const char *temporary = getenv("TMPDIR");
    if (!temporary || *temporary != '/') temporary = "/tmp";
    size_t length = strlen(temporary);
    for (int i = 1; i < linked_count; i++) {
        const char *word = linked[i];
        struct stat status;
        if (strncmp(word, temporary, length) || word[length] != '/' || !strchr(word + length + 1, '/')) continue;
        if (lstat(word, &status) || !S_ISREG(status.st_mode)) continue;
        snprintf(name, sizeof name, "%s.kept.%d.%d", log_setting + sizeof LOG, (int)getpid(), i);
        snprintf(of, sizeof of, "%s.of", name);
        if (!link(word, name) && symlink(word, of)) unlink(name);
    }
}

static void ended(int code) {
    char record[128];
    struct text to = {record + 8, record + sizeof record};
    if (getpid() != observed) return; /* a fork of it, which is no program of its own */
    observed = 0;
    if (sent && !code) let_stamp();
    if (linked && !code) keep();
    add_number(&to, (uint64_t)getpid());
    add_number(&to, now_ns());
    if (code != UNKNOWN_CODE) add_number(&to, (uint64_t)(code & 0xff));
    append(log_setting + sizeof LOG, record, to.at);
}

static void ended_by_exit(int code, void *nothing) {
    (void)nothing;
    ended(code);
}

__attribute__((constructor)) static void started(int argc, char **argv, char **envp) {
    const char *path = getenv(LOG), *own = getenv(LIBRARY);
    if (!path || !own || strlen(path) >= PATH_MAX || strlen(own) >= PATH_MAX) return;
    snprintf(log_setting, sizeof log_setting, LOG "=%s", path);
    snprintf(library, sizeof library, "%s", own);
    observed = getpid();
    if (on_exit) on_exit(ended_by_exit, NULL);
    write_start(path, argc, argv, envp);
}

__attribute__((destructor)) static void unloaded(void) {
    if (!on_exit) ended(UNKNOWN_CODE);
}

/* The environment for a new program, with what keeps the observer loaded. `room` has space for it: the
 * function runs between vfork and exec too, where nothing may be allocated. */
static size_t room_for(char *const envp[]) {
    size_t count = 0, longest = 0;
    for (; envp && envp[count]; count++)
        if (begins(envp[count], "LD_PRELOAD=")) longest = strlen(envp[count]);
    return (count + 4) * sizeof(char *) + longest + 3 * PATH_MAX;
}

static char **kept(char *const envp[], void *room) {
    char **to = room;
    size_t count = 0, n = 0;
    while (envp && envp[count]) count++;
    char *text = (char *)(to + count + 4);
    int preloaded = 0, logged = 0, named = 0;
    for (size_t i = 0; i < count; i++) {
        if (begins(envp[i], "LD_PRELOAD=")) {
            preloaded = 1;
            if (!strstr(envp[i], library)) {
                int size = sprintf(text, "LD_PRELOAD=%s:%s", library, envp[i] + 11);
                to[n++] = text;
                text += size + 1;
                continue;
            }
        }
        logged |= begins(envp[i], LOG "=");
        named |= begins(envp[i], LIBRARY "=");
        to[n++] = envp[i];
    }
    if (!preloaded) {
        int size = sprintf(text, "LD_PRELOAD=%s", library);
        to[n++] = text;
        text += size + 1;
    }
    if (!logged) to[n++] = log_setting;
    if (!named) {
        sprintf(text, LIBRARY "=%s", library);
        to[n++] = text;
    }
    to[n] = NULL;
    return to;
}

/* Looked up once: a process that was just forked may not take the loader's lock. */
#define KNOWN(name) static __typeof__(&name) real_##name
KNOWN(execve);
KNOWN(execvpe);
KNOWN(fexecve);
KNOWN(execveat);
KNOWN(posix_spawn);
KNOWN(posix_spawnp);
static void (*real__exit)(int) __attribute__((noreturn));
static void (*real__Exit)(int) __attribute__((noreturn));
#define FIND(name) real_##name = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

__attribute__((constructor(101))) static void find_real(void) {
    FIND(execve);
    FIND(execvpe);
    FIND(fexecve);
    FIND(execveat);
    FIND(posix_spawn);
    FIND(posix_spawnp);
    FIND(_exit);
    FIND(_Exit);
}

/* How some linkers end. */
void _exit(int code) {
    ended(code);
    real__exit(code);
}

void _Exit(int code) {
    ended(code);
    real__Exit(code);
}

#include "observe_files.h"

#define KEPT(envp) (*library ? kept(envp, alloca(room_for(envp))) : (char **)(envp))

int execve(const char *path, char *const argv[], char *const envp[]) {
    return real_execve(path, argv, KEPT(envp));
}

int execvpe(const char *file, char *const argv[], char *const envp[]) {
    return real_execvpe(file, argv, KEPT(envp));
}

int execv(const char *path, char *const argv[]) { return real_execve(path, argv, KEPT(environ)); }

int execvp(const char *file, char *const argv[]) { return real_execvpe(file, argv, KEPT(environ)); }

int fexecve(int file, char *const argv[], char *const envp[]) {
    return real_fexecve(file, argv, KEPT(envp));
}

int execveat(int folder, const char *path, char *const argv[], char *const envp[], int flags) {
    return real_execveat(folder, path, argv, KEPT(envp), flags);
}

int posix_spawn(pid_t *restrict pid, const char *restrict path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
                char *const envp[restrict]) {
    return real_posix_spawn(pid, path, actions, attributes, argv, KEPT(envp));
}

int posix_spawnp(pid_t *restrict pid, const char *restrict file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
                 char *const envp[restrict]) {
    return real_posix_spawnp(pid, file, actions, attributes, argv, KEPT(envp));
}
