kernel void map(global const uint *source, global uint *result, uint source_n, uint result_n)
{
    uint i = get_global_id(0);
    if (i < result_n)
        result[i] = source[i] * 3 + 1;
}
