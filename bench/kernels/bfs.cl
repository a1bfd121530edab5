kernel void bfs(constant uint *current, global const uint *offsets, global const uint *targets,
                volatile global uint *level, uint current_n, uint offsets_n, uint targets_n, uint level_n)
{
    uint v = get_global_id(0);
    if (v < level_n && level[v] == current[0]) {
        for (uint e = offsets[v]; e < offsets[v + 1]; e++) {
            uint next = targets[e];
            if (level[next] == 0xffffffffu)
                atomic_cmpxchg(&level[next], 0xffffffffu, current[0] + 1);
        }
    }
}
