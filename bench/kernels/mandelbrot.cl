#pragma OPENCL FP_CONTRACT OFF

kernel void mandelbrot(global uint *taken, uint taken_n)
{
    uint i = get_global_id(0);
    if (i < taken_n) {
        float x = (float)(i % 1024) * 0.0029296875f - 2.25f;
        float y = (float)(i / 1024) * 0.00244140625f - 1.25f;
        float zx = 0.0f, zy = 0.0f;
        uint steps = 0;
        for (uint k = 0; k < 256; k++) {
            float xx = zx * zx, yy = zy * zy;
            if (xx + yy > 4.0f)
                break;
            zy = 2.0f * zx * zy + y;
            zx = xx - yy + x;
            steps++;
        }
        taken[i] = steps;
    }
}
