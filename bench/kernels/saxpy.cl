#pragma OPENCL FP_CONTRACT OFF

kernel void saxpy(constant float *a, global const float *x, global float *y, uint an, uint xn, uint yn)
{
    uint i = get_global_id(0);
    if (i < yn)
        y[i] = a[0] * x[i] + y[i];
}
