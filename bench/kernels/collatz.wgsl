@group(0) @binding(0) var<storage, read_write> steps: array<u32>;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = (group.y * groups.x + group.x) * 64u + lane;
    if i < arrayLength(&steps) {
        var n = u64(i) + 1lu;
        var taken = 0u;
        while n != 1lu {
            n = select(3lu * n + 1lu, n >> 1u, (n & 1lu) == 0lu);
            taken++;
        }
        steps[i] = taken;
    }
}
