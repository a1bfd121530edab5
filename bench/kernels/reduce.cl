kernel void reduce(global const uint *data, global uint *sums, uint data_n, uint sums_n)
{
    local uint part[256];
    uint lane = get_local_id(0);
    part[lane] = get_global_id(0) < data_n ? data[get_global_id(0)] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_size = 128; half_size > 0; half_size >>= 1) {
        if (lane < half_size)
            part[lane] += part[lane + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0)
        sums[get_group_id(0)] = part[0];
}
