#pragma OPENCL FP_CONTRACT OFF

kernel void matmul(
    global const float *a, global const float *b, global float *product, uint a_n, uint b_n, uint product_n)
{
    local float left[256];
    local float right[256];
    uint x = get_local_id(0), y = get_local_id(1);
    uint column = get_global_id(0), row = get_global_id(1);
    float sum = 0.0f;
    for (uint tile = 0; tile < 32; tile++) {
        left[y * 16 + x] = a[row * 512 + tile * 16 + x];
        right[y * 16 + x] = b[(tile * 16 + y) * 512 + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = 0; k < 16; k++)
            sum = sum + left[y * 16 + k] * right[k * 16 + x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    product[row * 512 + column] = sum;
}
