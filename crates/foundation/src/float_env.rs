//! The default floating-point environment.
//!
//! A caller may run with subnormals flushed or with another rounding mode: audio and simulation hosts do. The
//! promise of equal bytes needs round to nearest even with gradual underflow, so whatever executes a program
//! enters the default environment first and gives the caller's back afterwards.

/// Runs `body` in the default floating-point environment and restores the caller's afterwards, also when
/// `body` panics.
///
/// ```
/// let sum = vyre_foundation::float_env::with_default(|| 1.0e-45_f32 + 1.0e-45_f32);
/// assert_eq!(sum.to_bits(), 2);
/// ```
pub fn with_default<R>(body: impl FnOnce() -> R) -> R {
    let _restore = Restore(control::read());
    control::write(control::DEFAULT);
    body()
}

struct Restore(control::Word);

impl Drop for Restore {
    fn drop(&mut self) {
        control::write(self.0);
    }
}

#[cfg(target_arch = "x86_64")]
mod control {
    pub(super) type Word = u32;
    /// All exceptions masked, round to nearest, no flushing: the state in which a thread starts.
    pub(super) const DEFAULT: Word = 0x1f80;

    pub(super) fn read() -> Word {
        let mut word: Word = 0;
        // SAFETY: stores the 32-bit MXCSR into a local; every x86-64 has SSE.
        unsafe {
            std::arch::asm!("stmxcsr [{}]", in(reg) &mut word, options(nostack, preserves_flags));
        }
        word
    }

    pub(super) fn write(word: Word) {
        // SAFETY: the word is the default or one that `read` returned, so no reserved bit is set.
        unsafe {
            std::arch::asm!("ldmxcsr [{}]", in(reg) &word, options(nostack, preserves_flags));
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod control {
    pub(super) type Word = u64;
    /// Round to nearest, no flushing, no trapping: the state in which a thread starts.
    pub(super) const DEFAULT: Word = 0;

    pub(super) fn read() -> Word {
        let word: Word;
        // SAFETY: reads FPCR, which user code may read.
        unsafe {
            std::arch::asm!("mrs {}, fpcr", out(reg) word, options(nomem, nostack, preserves_flags));
        }
        word
    }

    pub(super) fn write(word: Word) {
        // SAFETY: the word is the default or one that `read` returned.
        unsafe {
            std::arch::asm!("msr fpcr, {}", in(reg) word, options(nostack, preserves_flags));
        }
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod control {
    pub(super) type Word = ();
    pub(super) const DEFAULT: Word = ();
    pub(super) fn read() -> Word {}
    pub(super) fn write(_: Word) {}
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    fn flushing_is_off_inside_and_back_on_afterwards() {
        let before = control::read();
        control::write(control::DEFAULT | 0x8040); // flush to zero, denormals are zero
        let tiny = f32::from_bits(1);
        let flushed = black_box(black_box(tiny) * black_box(1.0));
        let kept = with_default(|| black_box(black_box(tiny) * black_box(1.0)));
        let after = control::read();
        control::write(before);
        assert_eq!(flushed.to_bits(), 0);
        assert_eq!(kept.to_bits(), 1);
        assert_eq!(after & 0x8040, 0x8040);
    }
}
