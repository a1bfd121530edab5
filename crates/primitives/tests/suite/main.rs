//! Every primitive against its oracle: on the reference, under several schedules, and on the CPU backend, on several
//! grids and thread counts.

mod case;
mod chance;
mod graphs;
mod hashing;
mod loops;
mod scans;
mod search;
mod sets;
