@group(0) @binding(0) var<storage, read> seeds: array<u32>;
@group(0) @binding(1) var<storage, read_write> hashes: array<u32>;

fn mix_bits(x: u32) -> u32 {
    let a = (x ^ (x >> 16u)) * 0x7feb352du;
    let b = (a ^ (a >> 15u)) * 0x846ca68bu;
    return b ^ (b >> 16u);
}

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = (group.y * groups.x + group.x) * 64u + lane;
    if i < arrayLength(&hashes) {
        var hash = seeds[i];
        for (var k = 0u; k < 64u; k++) {
            hash = mix_bits(hash + k);
        }
        hashes[i] = hash;
    }
}
