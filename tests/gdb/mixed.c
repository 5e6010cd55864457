/* Half of a program: MIXED names its function, NEXT the one that it calls. One half is compiled with DWARF unwind data,
 * the other with SFrame alone; their calls alternate. */
#define KEEP __attribute__((noipa))

int NEXT(int depth);

KEEP int MIXED(int depth)
{
    volatile int room[MIXED_ROOM];
    room[depth & 3] = depth;
    int result = depth ? NEXT(depth - 1) : 0;
    return result + room[depth & 3];
}

#ifdef MIXED_MAIN
int main(void)
{
    return MIXED(6) == 21 ? 0 : 1;
}
#endif
