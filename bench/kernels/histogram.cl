kernel void histogram(global const uint *keys, volatile global uint *bins, uint keys_n, uint bins_n)
{
    local uint counts[256];
    uint lane = get_local_id(0);
    counts[lane] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint first = get_group_id(0) * 16384;
    uint end = min(first + 16384, keys_n);
    for (uint i = first + lane; i < end; i += 256)
        atomic_inc(&counts[keys[i] >> 24]);
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add(&bins[lane], counts[lane]);
}
