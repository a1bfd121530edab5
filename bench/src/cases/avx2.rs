//! Kernels as somebody writes them who knows vectors: AVX2, eight numbers of 32 bits at a time. Operations and their order
//! are those of natural Rust, so are the bytes.

use crate::data::Data;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use crate::data::Data;
    use rayon::prelude::*;
    use std::arch::x86_64::*;

    /// Lanes of a vector.
    const LANES: usize = 8;

    /// How many vectors of hashes are computed at once: the next step of one waits for a multiplication.
    const VECTORS: usize = 8;

    #[target_feature(enable = "avx2")]
    fn hash_block(seeds: &[u32], hashes: &mut [u32]) {
        let load = |k: usize| {
            let lanes = seeds[k * LANES..].first_chunk::<LANES>().unwrap_or(&[0; LANES]);
            // SAFETY: eight numbers are there.
            unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) }
        };
        let mut hash: [__m256i; VECTORS] = std::array::from_fn(load);
        let (a, b) = (_mm256_set1_epi32(0x7feb_352d), _mm256_set1_epi32(0x846c_a68b_u32 as i32));
        for k in 0..64 {
            let k = _mm256_set1_epi32(k);
            for hash in &mut hash {
                let mut x = _mm256_add_epi32(*hash, k);
                x = _mm256_mullo_epi32(_mm256_xor_si256(x, _mm256_srli_epi32::<16>(x)), a);
                x = _mm256_mullo_epi32(_mm256_xor_si256(x, _mm256_srli_epi32::<15>(x)), b);
                *hash = _mm256_xor_si256(x, _mm256_srli_epi32::<16>(x));
            }
        }
        for (lanes, hash) in hashes.as_chunks_mut::<LANES>().0.iter_mut().zip(hash) {
            // SAFETY: there is room for eight numbers.
            unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), hash) };
        }
    }

    pub(super) fn hash(data: &mut [Data]) {
        let [Data::U32(seeds), Data::U32(hashes)] = data else { unreachable!() };
        let block = VECTORS * LANES;
        seeds.par_chunks_exact(block).zip(hashes.par_chunks_exact_mut(block)).for_each(|(seeds, hashes)| {
            // SAFETY: the caller has looked that there is AVX2.
            unsafe { hash_block(seeds, hashes) };
        });
    }

    #[target_feature(enable = "avx2")]
    fn nbody_block(
        (dt, softening): (f32, f32),
        bodies: &[[f32; 4]],
        mine: &[[f32; 4]; LANES],
        velocity: &mut [[f32; 3]; LANES],
        moved: &mut [[f32; 4]; LANES],
    ) {
        let lanes = |axis: usize| {
            let lanes: [f32; LANES] = std::array::from_fn(|lane| mine[lane][axis]);
            // SAFETY: eight numbers are there.
            unsafe { _mm256_loadu_ps(lanes.as_ptr()) }
        };
        let place = [lanes(0), lanes(1), lanes(2)];
        let mut force = [_mm256_setzero_ps(); 3];
        let (one, softening) = (_mm256_set1_ps(1.0), _mm256_set1_ps(softening));
        for body in bodies {
            let delta: [__m256; 3] =
                std::array::from_fn(|axis| _mm256_sub_ps(_mm256_set1_ps(body[axis]), place[axis]));
            let square = delta.map(|delta| _mm256_mul_ps(delta, delta));
            let sum = _mm256_add_ps(_mm256_add_ps(square[0], square[1]), square[2]);
            let inverse = _mm256_div_ps(one, _mm256_sqrt_ps(_mm256_add_ps(sum, softening)));
            let cube = _mm256_mul_ps(_mm256_mul_ps(inverse, inverse), inverse);
            let strength = _mm256_mul_ps(_mm256_set1_ps(body[3]), cube);
            for (force, delta) in force.iter_mut().zip(delta) {
                *force = _mm256_add_ps(*force, _mm256_mul_ps(strength, delta));
            }
        }
        for (axis, force) in force.into_iter().enumerate() {
            let mut of_axis = [0.0_f32; LANES];
            // SAFETY: there is room for eight numbers.
            unsafe { _mm256_storeu_ps(of_axis.as_mut_ptr(), force) };
            for (lane, force) in of_axis.into_iter().enumerate() {
                velocity[lane][axis] += force * dt;
                moved[lane][axis] = mine[lane][axis] + velocity[lane][axis] * dt;
                moved[lane][3] = mine[lane][3];
            }
        }
    }

    pub(super) fn nbody(data: &mut [Data]) {
        let [Data::F32(settings), Data::F32(bodies), Data::F32(velocity), Data::F32(moved)] = data else {
            unreachable!()
        };
        let settings = (settings[0], settings[1]);
        let (bodies, _) = bodies.as_chunks::<4>();
        let (mine, _) = bodies.as_chunks::<LANES>();
        let (velocity, _) = velocity.as_chunks_mut::<3>().0.as_chunks_mut::<LANES>();
        let (moved, _) = moved.as_chunks_mut::<4>().0.as_chunks_mut::<LANES>();
        mine.par_iter().zip(velocity).zip(moved).for_each(|((mine, velocity), moved)| {
            // SAFETY: the caller has looked that there is AVX2.
            unsafe { nbody_block(settings, bodies, mine, velocity, moved) };
        });
    }
}

/// Whether this machine has AVX2.
pub(crate) fn is_here() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx2")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

pub(super) fn hash(data: &mut [Data]) {
    assert!(is_here(), "measured only where there is AVX2");
    #[cfg(target_arch = "x86_64")]
    x86::hash(data);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = data;
}

pub(super) fn nbody(data: &mut [Data]) {
    assert!(is_here(), "measured only where there is AVX2");
    #[cfg(target_arch = "x86_64")]
    x86::nbody(data);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = data;
}
