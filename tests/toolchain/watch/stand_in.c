/* Answers as nvcc does, as far as the tool asks. It "compiles" by writing, for the source and each header that
 * it quotes, a digest of the contents; so an artifact tells which contents it was made from. Headers are looked
 * for in first/ and then in inc/. A file that holds #error is refused. It takes as many milliseconds as
 * the file SLOW says, which may change meanwhile, and writes one line to the file LOG when it begins. As many
 * times as the file GHOSTS says it names a header that is not there, as if it had been deleted meanwhile. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *after(int c, char **v, const char *name) {
  for (int i = 1; i + 1 < c; ++i)
    if (!strcmp(v[i], name)) return v[i + 1];
  return 0;
}

static char *contents(const char *path) {
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  char *text = calloc(1, 1 << 20);
  fread(text, 1, (1 << 20) - 1, file);
  fclose(file);
  return text;
}

static uint64_t digest(const char *text) {
  uint64_t value = 14695981039346656037u;
  for (; *text; ++text) value = (value ^ (unsigned char)*text) * 1099511628211u;
  return value;
}

static const char *out_name;

static void take(const char *path, const char *text, FILE *list, FILE *out) {
  if (strstr(text, "#error")) {
    fprintf(stderr, "%s(1): error: it says so\n", path);
    exit(1);
  }
  int first = !ftell(list);
  fprintf(list, first ? "%1$s : %2$s" : " \\\n    %2$s", out_name, path);
  fprintf(out, "// %s %016llx\n", path, (unsigned long long)digest(text));
}

int main(int c, char **v) {
  const char *list_name = after(c, v, "-MF"), *source = v[c - 1];
  out_name = after(c, v, "-o");
  for (int i = 1; i < c; ++i) {
    if (!strcmp(v[i], "--version")) return puts("Cuda compilation tools, release 13.0, V13.0.88"), 0;
    if (!strcmp(v[i], "--dryrun")) {
      printf("#$ _HERE_=%s/bin\n#$ TOP=%s\n#$ INCLUDES=\n", TOP, TOP);
      printf("#$ gcc -D__CUDA_ARCH_LIST__=900 -E -x c++ -I\"first\" -I\"inc\" \"%s\" -o \"x\"\n", source);
      printf("#$ gcc -D__CUDA_ARCH_LIST__=900 -c -x c++ \"x\" -o \"y\"\n");
      return 0;
    }
  }
  char line[256];
  int log = open(TOP "/LOG", O_WRONLY | O_CREAT | O_APPEND, 0644);
  snprintf(line, sizeof line, "%d %s\n", getpid(), source);
  write(log, line, strlen(line));
  FILE *list = fopen(list_name, "w"), *out = fopen(out_name, "w");
  char *text = contents(source);
  if (!list || !out || !text) return 1;
  fprintf(out, ".version 9.0\n.target sm_90\n.address_size 64\n");
  take(source, text, list, out);
  for (char *at = text; (at = strstr(at, "#include \"")); ++at) {
    char name[128] = "", path[256];
    sscanf(at + 10, "%127[^\"]", name);
    snprintf(path, sizeof path, "first/%s", name);
    char *header = contents(path);
    if (!header) snprintf(path, sizeof path, "inc/%s", name), header = contents(path);
    if (!header) return fprintf(stderr, "%s(1): fatal error: %s: No such file or directory\n", source, name), 1;
    take(path, header, list, out);
  }
  int ghosts = 0;
  FILE *file = fopen(TOP "/GHOSTS", "r+");
  if (file && fscanf(file, "%d", &ghosts) == 1 && ghosts > 0) {
    fprintf(list, " \\\n    inc/ghost.cuh");
    rewind(file);
    fprintf(file, "%d\n", ghosts - 1);
  }
  if (file) fclose(file);
  for (long waited = 0, slow = 1; waited < slow; waited += 5) {
    FILE *file = fopen(TOP "/SLOW", "r");
    if (!file || fscanf(file, "%ld", &slow) != 1) slow = 0;
    if (file) fclose(file);
    struct timespec time = {0, 5000000};
    if (slow) nanosleep(&time, 0);
  }
  fprintf(list, "\n");
  fprintf(out, ".visible .entry k()\n{\nret;\n}\n");
  return fclose(list) | fclose(out);
}
