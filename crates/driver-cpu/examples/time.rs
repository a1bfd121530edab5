//! x
use std::time::Instant;
use vyre_driver::{CompileOptions, Unit, VyreBackend};
use vyre_driver_cpu::{CpuBackend, CpuOptions};
use vyre_foundation::Program;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let t = std::fs::read_to_string(&a[1]).unwrap();
    for _ in 0..5 {
        let s = Instant::now();
        let b = CpuBackend::with_options(CpuOptions { cache_folder: None, ..Default::default() }).unwrap();
        let s1 = s.elapsed();
        let u = Unit::new(Program::parse(&t).unwrap()).unwrap();
        let s2 = s.elapsed();
        u.kernel();
        let s3 = s.elapsed();
        let p = b.compile(&u, &CompileOptions::default()).unwrap();
        let s4 = s.elapsed();
        println!(
            "start {:?} parse+validate {:?} lower {:?} compile {:?} code {}",
            s1,
            s2 - s1,
            s3 - s2,
            s4 - s3,
            p.code_bytes()
        );
    }
}
