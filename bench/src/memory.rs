//! How much memory something allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's allocator, which also counts.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn took(bytes: usize) {
    let now = NOW.fetch_add(bytes, Relaxed) + bytes;
    MOST.fetch_max(now, Relaxed);
}

// SAFETY: every call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller keeps what the allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller keeps what the allocator asks for.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps what the allocator asks for.
        unsafe { System.dealloc(start, layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        NOW.fetch_sub(layout.size(), Relaxed);
        took(bytes);
        // SAFETY: the caller keeps what the allocator asks for.
        unsafe { System.realloc(start, layout, bytes) }
    }
}

/// Does something, and tells how many bytes more than before were allocated at a time at the most.
pub(crate) fn most<T>(act: impl FnOnce() -> T) -> (T, u64) {
    let before = NOW.load(Relaxed);
    MOST.store(before, Relaxed);
    let result = act();
    (result, MOST.load(Relaxed).saturating_sub(before) as u64)
}
