/* Compiled by make.sh into host.so: a host library with a stamp, an exported and a hidden function. */
extern const char freshproof_stamp_host[76];
__attribute__((used, visibility("default"))) const char freshproof_stamp_host[76] =
    "freshproof:0000000000000000000000000000000000000000000000000000000000000000";
static int hidden(int x) { return x * 3; }
__attribute__((visibility("default"))) int exported(int x) { return hidden(x) + 1; }
