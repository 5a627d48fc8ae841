#define WINDOW 4
