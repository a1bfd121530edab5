//! Failures on purpose: in tests of this crate, every place that can fail for want of memory or of a compiler asks here
//! whether it does.

#[cfg(not(test))]
pub(crate) fn strikes() -> bool {
    false
}

#[cfg(test)]
pub(crate) use armed::strikes;

#[cfg(test)]
pub(crate) mod armed {
    use std::cell::Cell;

    thread_local! {
        /// How many places are passed before one fails; `None` where none does.
        static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
    }

    /// Lets so many places pass and the next one fail, on this thread.
    pub(crate) fn arm(passes: u32) {
        LEFT.set(Some(passes));
    }

    /// Lets nothing fail. Says whether something has.
    pub(crate) fn disarm() -> bool {
        LEFT.take().is_none()
    }

    pub(crate) fn strikes() -> bool {
        match LEFT.get() {
            Some(0) => {
                LEFT.set(None);
                true
            }
            Some(left) => {
                LEFT.set(Some(left - 1));
                false
            }
            None => false,
        }
    }
}
