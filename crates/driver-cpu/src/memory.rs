//! Memory that generated code works on.

use crate::faults;
use std::alloc::{Layout, alloc_zeroed};
use std::sync::atomic::{AtomicUsize, Ordering};
use vyre_driver::{Error, Result};

/// Where memory comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Placement {
    /// The allocator of the process.
    #[default]
    Heap,
    /// Pages of its own between pages that cannot be touched, with the last byte against one of these: for tests
    /// that generated code stays inside its buffers. On systems without such pages, the heap.
    Guarded,
}

/// Zeroed memory, shared by threads that know what they do.
///
/// Nothing but [`Memory::start`] is derived from it while code runs: what code does there is the program's business,
/// as on any device.
pub(crate) struct Memory {
    start: *mut u8,
    bytes: usize,
    owner: Owner,
}

enum Owner {
    Heap(Vec<u8>),
    #[cfg(unix)]
    Guarded(#[allow(dead_code)] guarded::Pages), // Kept for its drop.
}

// SAFETY: the memory is plain bytes that belong to the value; who writes when is for the batches that use it.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// What every place is aligned to: the widest element and slot.
const ALIGN: usize = 16;

/// From how many bytes on it matters how memory is laid out.
const LARGE: usize = 2 << 20;

impl Memory {
    /// Zeroed memory.
    pub(crate) fn zeroed(bytes: u64, placement: Placement, what: &str) -> Result<Memory> {
        let full = || full(bytes, what);
        let size = usize::try_from(bytes).map_err(|_| full())?;
        if faults::strikes() {
            return Err(full());
        }
        #[cfg(unix)]
        if placement == Placement::Guarded {
            let pages = guarded::Pages::new(size).ok_or_else(full)?;
            return Ok(Memory { start: pages.end_minus(size), bytes: size, owner: Owner::Guarded(pages) });
        }
        #[cfg(not(unix))]
        let _ = placement;
        let mut heap = zeroed_bytes(size).ok_or_else(full)?;
        let mut start = heap.as_mut_ptr();
        if !start.addr().is_multiple_of(ALIGN) {
            if size == 0 {
                start = std::ptr::without_provenance_mut(ALIGN);
            } else {
                heap = zeroed_bytes(size.checked_add(ALIGN).ok_or_else(full)?).ok_or_else(full)?;
                start = heap.as_mut_ptr();
                // SAFETY: there is room for the difference.
                start = unsafe { start.add(start.align_offset(ALIGN)) };
            }
        }
        Ok(Memory { start, bytes: size, owner: Owner::Heap(heap) })
    }

    /// Zeroed memory of a buffer that stays. Large ones begin with a huge page, so that all of them can be in such: a search
    /// that reads 4 MB of levels at unrelated places was a tenth slower in others. And they begin at different places of it:
    /// code that goes through two buffers side by side was a tenth slower where the same places of the caches had to hold
    /// both.
    pub(crate) fn resident(bytes: u64, placement: Placement) -> Result<Memory> {
        const PAGE: usize = 4096;
        const HUGE: usize = 2 << 20;
        const STARTS: [usize; 4] = [0, PAGE / 2, PAGE / 4, PAGE / 4 * 3];
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let what = "a resident buffer";
        if placement != Placement::Heap || bytes < LARGE as u64 {
            return Memory::zeroed(bytes, placement, what);
        }
        let room = bytes.saturating_add((HUGE + PAGE) as u64);
        let mut memory = Memory::zeroed(room, placement, what).map_err(|_| full(bytes, what))?;
        let start = STARTS[NEXT.fetch_add(1, Ordering::Relaxed) % STARTS.len()];
        // SAFETY: this is less than a huge page and a page, and there is room for both.
        memory.start = unsafe { memory.start.add(memory.start.align_offset(HUGE) + start) };
        memory.bytes -= HUGE + PAGE;
        Ok(memory)
    }

    /// Bytes of the heap where they are; a copy where that is no place for every element.
    pub(crate) fn from_vec(mut bytes: Vec<u8>) -> Result<Memory> {
        let start = bytes.as_mut_ptr();
        if start.addr().is_multiple_of(ALIGN) {
            return Ok(Memory { start, bytes: bytes.len(), owner: Owner::Heap(bytes) });
        }
        let memory = Memory::zeroed(bytes.len() as u64, Placement::Heap, "a copy of an input")?;
        // SAFETY: the memory is new and as large as the bytes.
        unsafe { memory.start().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(memory)
    }

    /// The first byte, aligned for every element, at least where the size is a multiple of 16.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// How many bytes there are.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The bytes without copying; the memory itself where that cannot be.
    pub(crate) fn into_vec(self) -> Result<Vec<u8>, Memory> {
        match self.owner {
            Owner::Heap(heap) if heap.len() == self.bytes => Ok(heap),
            _ => Err(self),
        }
    }
}

fn full(asked: u64, what: &str) -> Error {
    Error::OutOfMemory { what: what.to_owned(), asked, available: None }
}

/// Zeroed bytes from the allocator, which for large sizes gives untouched pages; `None` where there are not so many.
fn zeroed_bytes(bytes: usize) -> Option<Vec<u8>> {
    if bytes == 0 {
        return Some(Vec::new());
    }
    let layout = Layout::array::<u8>(bytes).ok()?;
    // SAFETY: the layout is not empty.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        return None;
    }
    #[cfg(target_os = "linux")]
    ask_for_huge_pages(start, bytes);
    // SAFETY: the allocation has this layout, and all bytes are initialised.
    Some(unsafe { Vec::from_raw_parts(start, bytes, bytes) })
}

/// Large buffers are walked from end to end: with huge pages that takes fewer faults and fewer walks of page tables.
/// Where there are none nothing changes.
#[cfg(target_os = "linux")]
fn ask_for_huge_pages(start: *mut u8, bytes: usize) {
    if bytes < LARGE {
        return;
    }
    let page = rustix::param::page_size();
    let skipped = start.align_offset(page);
    let length = (bytes - skipped) / page * page;
    // SAFETY: whole pages inside the allocation; the advice changes how they are backed, not what they hold.
    let _ =
        unsafe { rustix::mm::madvise(start.add(skipped).cast(), length, rustix::mm::Advice::LinuxHugepage) };
}

#[cfg(unix)]
mod guarded {
    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
    use std::ptr;

    /// Pages with one before and one behind that cannot be touched.
    pub(super) struct Pages {
        start: *mut u8,
        length: usize,
        page: usize,
    }

    impl Pages {
        pub(super) fn new(bytes: usize) -> Option<Pages> {
            let page = rustix::param::page_size();
            let length = bytes.checked_next_multiple_of(page)?.checked_add(2 * page)?;
            let (none, private) = (ProtFlags::empty(), MapFlags::PRIVATE);
            // SAFETY: a new mapping that nothing else names.
            let start = unsafe { mmap_anonymous(ptr::null_mut(), length, none, private) }.ok()?;
            let pages = Pages { start: start.cast(), length, page };
            let inner = length - 2 * page;
            if inner > 0 {
                let access = MprotectFlags::READ | MprotectFlags::WRITE;
                // SAFETY: the pages between the first and the last of the mapping.
                unsafe { mprotect(pages.start.add(page).cast(), inner, access) }.ok()?;
            }
            Some(pages)
        }

        /// The address so many bytes before the last page.
        pub(super) fn end_minus(&self, bytes: usize) -> *mut u8 {
            // SAFETY: the mapping is longer than that.
            unsafe { self.start.add(self.length - self.page - bytes) }
        }
    }

    impl Drop for Pages {
        fn drop(&mut self) {
            // SAFETY: the mapping is this value's own. It can fail only for arguments that are wrong.
            let _ = unsafe { munmap(self.start.cast(), self.length) };
        }
    }
}
