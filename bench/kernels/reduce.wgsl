@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;

var<workgroup> part: array<u32, 256>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let linear = group.y * groups.x + group.x;
    let i = linear * 256u + lane;
    part[lane] = select(0u, data[i], i < arrayLength(&data));
    workgroupBarrier();
    for (var half_size = 128u; half_size > 0u; half_size >>= 1u) {
        if lane < half_size {
            part[lane] += part[lane + half_size];
        }
        workgroupBarrier();
    }
    if lane == 0u && linear < arrayLength(&sums) {
        sums[linear] = part[0];
    }
}
