kernel void life(global uint *next, global const uint *cells, uint next_n, uint cells_n)
{
    uint line = 4098;
    uint here = ((uint)get_global_id(1) + 1) * line + (uint)get_global_id(0) + 1;
    uint above = here - line, below = here + line;
    uint around = cells[above - 1] + cells[above] + cells[above + 1] + cells[here - 1] + cells[here + 1]
        + cells[below - 1] + cells[below] + cells[below + 1];
    next[here] = around == 3 || (around == 2 && cells[here] == 1);
}
