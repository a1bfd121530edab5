kernel void collatz(global uint *steps, uint steps_n)
{
    uint i = get_global_id(0);
    if (i < steps_n) {
        ulong n = (ulong)i + 1;
        uint taken = 0;
        while (n != 1) {
            n = n % 2 == 0 ? n / 2 : 3 * n + 1;
            taken++;
        }
        steps[i] = taken;
    }
}
