//! Buffers so large that what comes next is fetched ahead: the same results, also where that is behind their ends and
//! nothing may be touched.

use vyre_driver::{BackendExt, DispatchConfig};
use vyre_driver_cpu::{CpuBackend, CpuOptions, Placement, Simd};
use vyre_foundation::Program;

#[test]
fn large_buffers_give_the_same_results_in_vectors() {
    let text = "program p {
        workgroup_size 64;
        buffer a: read u32[];
        buffer b: read u64[];
        buffer o: output u32[];
        buffer w: output u64[];
        let i = global_id.x;
        if i < len(o) {
            o[i] = a[i] * 3 + 1;
            w[i] = b[i] + u64(a[i]);
        }
    }";
    let program = Program::parse(text).expect("a program");
    // Of each as many as are fetched ahead, and some that fill no bundle.
    let count = (16 << 20) / 4 + 13u32;
    let a: Vec<u8> = (0..count).flat_map(|i| (i ^ 0x5555).to_le_bytes()).collect();
    let b: Vec<u8> = (0..u64::from(count)).flat_map(|i| (i << 33 | 7).to_le_bytes()).collect();
    let config = DispatchConfig::new().output_len("o", count).output_len("w", count);
    for (simd, threads) in [(Simd::On, 1), (Simd::Always, 2), (Simd::Off, 2)] {
        let options = CpuOptions {
            threads,
            simd,
            cache_folder: None,
            placement: Placement::Guarded,
            ..CpuOptions::default()
        };
        let backend = CpuBackend::with_options(options).expect("a CPU");
        let outputs = backend.dispatch_borrowed(&program, &[&a, &b], &config).expect("a result").outputs;
        for i in 0..count {
            let at = i as usize;
            let x = i ^ 0x5555;
            assert_eq!(outputs[0][4 * at..4 * at + 4], x.wrapping_mul(3).wrapping_add(1).to_le_bytes());
            let y = (u64::from(i) << 33 | 7) + u64::from(x);
            assert_eq!(outputs[1][8 * at..8 * at + 8], y.to_le_bytes());
        }
    }
}
