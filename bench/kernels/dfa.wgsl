// Bytes are taken out of words: WGSL has none.
@group(0) @binding(0) var<storage, read> settings: array<u32>;
@group(0) @binding(1) var<storage, read> table: array<u32>;
@group(0) @binding(2) var<storage, read> text: array<u32>;
@group(0) @binding(3) var<storage, read_write> matches: array<u32>;

@compute @workgroup_size(16)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let chunk = (group.y * groups.x + group.x) * 16u + lane;
    if chunk >= arrayLength(&matches) {
        return;
    }
    let first_accepting = settings[0];
    var state = 0u;
    var count = 0u;
    let end = min(chunk * 1024u + 1024u, arrayLength(&text));
    for (var i = chunk * 1024u; i < end; i++) {
        var word = text[i];
        for (var k = 0u; k < 4u; k++) {
            let entry = state * 256u + (word & 255u);
            word >>= 8u;
            state = (table[entry >> 2u] >> ((entry & 3u) * 8u)) & 255u;
            count += u32(state >= first_accepting);
        }
    }
    matches[chunk] = count;
}
