@group(0) @binding(0) var<storage, read_write> taken: array<u32>;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = (group.y * groups.x + group.x) * 64u + lane;
    if i < arrayLength(&taken) {
        let x = f32(i % 1024u) * 0.0029296875 - 2.25;
        let y = f32(i / 1024u) * 0.00244140625 - 1.25;
        var zx = 0.0;
        var zy = 0.0;
        var steps = 0u;
        for (var k = 0u; k < 256u; k++) {
            let xx = zx * zx;
            let yy = zy * zy;
            if xx + yy > 4.0 {
                break;
            }
            zy = 2.0 * zx * zy + y;
            zx = xx - yy + x;
            steps++;
        }
        taken[i] = steps;
    }
}
