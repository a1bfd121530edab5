//! x
use vyre_driver::Unit;
use vyre_driver_cpu::{CpuBackend, Listing};
use vyre_foundation::Program;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let t = std::fs::read_to_string(&a[1]).unwrap();
    let u = Unit::new(Program::parse(&t).unwrap()).unwrap();
    let b = CpuBackend::new().unwrap();
    println!("{}", b.listing(&u, if a.len() > 2 { Listing::Clif } else { Listing::Asm }).unwrap());
}
