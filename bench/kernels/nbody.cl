#pragma OPENCL FP_CONTRACT OFF

kernel void nbody(constant float *settings, global const float4 *bodies, global float *velocity,
                  global float4 *moved, uint settings_n, uint bodies_n, uint velocity_n, uint moved_n)
{
    uint body = get_global_id(0);
    uint count = bodies_n / 4;
    if (body < count) {
        float dt = settings[0], softening = settings[1];
        float4 me = bodies[body];
        float ax = 0, ay = 0, az = 0;
        for (uint k = 0; k < count; k++) {
            float4 other = bodies[k];
            float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
            float inverse = 1.0f / sqrt(dx * dx + dy * dy + dz * dz + softening);
            float strength = other.w * (inverse * inverse * inverse);
            ax = ax + strength * dx;
            ay = ay + strength * dy;
            az = az + strength * dz;
        }
        float vx = velocity[body * 3] + ax * dt;
        float vy = velocity[body * 3 + 1] + ay * dt;
        float vz = velocity[body * 3 + 2] + az * dt;
        velocity[body * 3] = vx;
        velocity[body * 3 + 1] = vy;
        velocity[body * 3 + 2] = vz;
        moved[body] = (float4)(me.x + vx * dt, me.y + vy * dt, me.z + vz * dt, me.w);
    }
}
