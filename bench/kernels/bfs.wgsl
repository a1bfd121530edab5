@group(0) @binding(0) var<storage, read> current: array<u32>;
@group(0) @binding(1) var<storage, read> offsets: array<u32>;
@group(0) @binding(2) var<storage, read> targets: array<u32>;
@group(0) @binding(3) var<storage, read_write> level: array<atomic<u32>>;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let v = (group.y * groups.x + group.x) * 64u + lane;
    let now = current[0];
    if v < arrayLength(&level) && atomicLoad(&level[v]) == now {
        let end = offsets[v + 1u];
        for (var e = offsets[v]; e < end; e++) {
            let next = targets[e];
            if atomicLoad(&level[next]) == 0xffffffffu {
                atomicCompareExchangeWeak(&level[next], 0xffffffffu, now + 1u);
            }
        }
    }
}
