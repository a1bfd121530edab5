@group(0) @binding(0) var<storage, read_write> next: array<u32>;
@group(0) @binding(1) var<storage, read> cells: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let line = 4098u;
    let here = (id.y + 1u) * line + id.x + 1u;
    let above = here - line;
    let below = here + line;
    let around = cells[above - 1u] + cells[above] + cells[above + 1u] + cells[here - 1u] + cells[here + 1u]
        + cells[below - 1u] + cells[below] + cells[below + 1u];
    next[here] = u32(around == 3u || around == 2u && cells[here] == 1u);
}
