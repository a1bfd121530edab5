@group(0) @binding(0) var<storage, read> settings: array<f32>;
@group(0) @binding(1) var<storage, read> bodies: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> velocity: array<f32>;
@group(0) @binding(3) var<storage, read_write> moved: array<vec4<f32>>;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let body = (group.y * groups.x + group.x) * 64u + lane;
    let count = arrayLength(&bodies);
    if body >= count {
        return;
    }
    let dt = settings[0];
    let softening = settings[1];
    let me = bodies[body];
    var ax = 0.0;
    var ay = 0.0;
    var az = 0.0;
    for (var k = 0u; k < count; k++) {
        let other = bodies[k];
        let dx = other.x - me.x;
        let dy = other.y - me.y;
        let dz = other.z - me.z;
        let inverse = 1.0 / sqrt(dx * dx + dy * dy + dz * dz + softening);
        let strength = other.w * (inverse * inverse * inverse);
        ax = ax + strength * dx;
        ay = ay + strength * dy;
        az = az + strength * dz;
    }
    let vx = velocity[body * 3u] + ax * dt;
    let vy = velocity[body * 3u + 1u] + ay * dt;
    let vz = velocity[body * 3u + 2u] + az * dt;
    velocity[body * 3u] = vx;
    velocity[body * 3u + 1u] = vy;
    velocity[body * 3u + 2u] = vz;
    moved[body] = vec4<f32>(me.x + vx * dt, me.y + vy * dt, me.z + vz * dt, me.w);
}
