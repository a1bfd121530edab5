@group(0) @binding(0) var<storage, read> keys: array<u32>;
@group(0) @binding(1) var<storage, read_write> bins: array<atomic<u32>, 256>;

var<workgroup> counts: array<atomic<u32>, 256>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = (group.y * groups.x + group.x) * 16384u;
    let end = min(first + 16384u, arrayLength(&keys));
    for (var i = first + lane; i < end; i += 256u) {
        atomicAdd(&counts[keys[i] >> 24u], 1u);
    }
    workgroupBarrier();
    atomicAdd(&bins[lane], atomicLoad(&counts[lane]));
}
