@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> product: array<f32>;

var<workgroup> left: array<f32, 256>;
var<workgroup> right: array<f32, 256>;

@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    let x = local.x;
    let y = local.y;
    var sum = 0.0;
    for (var tile = 0u; tile < 32u; tile++) {
        left[y * 16u + x] = a[id.y * 512u + tile * 16u + x];
        right[y * 16u + x] = b[(tile * 16u + y) * 512u + id.x];
        workgroupBarrier();
        for (var k = 0u; k < 16u; k++) {
            sum = sum + left[y * 16u + k] * right[k * 16u + x];
        }
        workgroupBarrier();
    }
    product[id.y * 512u + id.x] = sum;
}
