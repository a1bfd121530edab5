kernel void barriers(global const uint *source, global uint *result, uint source_n, uint result_n)
{
    local uint shared[64];
    uint lane = get_local_id(0), i = get_global_id(0);
    uint value = i < source_n ? source[i] : 0;
    for (uint k = 0; k < 16; k++) {
        shared[lane] = value;
        barrier(CLK_LOCAL_MEM_FENCE);
        value = value * 3 + shared[(lane + 1) % 64];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (i < result_n)
        result[i] = value;
}
