//! The memory of a dispatch: storage that the grid shares, and the workgroup and local memory of the
//! invocations in flight.

use crate::Error;
use vyre_foundation::{AtomicOp, BufferAccess, Element, InputError, Layout, Name, Program, arith, element};

/// Where a buffer lives.
#[derive(Clone, Copy)]
enum Space {
    Storage(usize),
    /// At this offset in the memory of each workgroup.
    Workgroup(usize),
    /// At this offset in the memory of each invocation.
    Local(usize),
}

struct Buffer {
    name: Name,
    access: BufferAccess,
    element: Element,
    count: u32,
    space: Space,
}

/// Who accesses memory: a workgroup and an invocation among those in flight.
#[derive(Clone, Copy)]
pub(crate) struct Owner {
    pub(crate) workgroup: usize,
    pub(crate) invocation: usize,
}

pub(crate) struct Memory {
    buffers: Vec<Buffer>,
    storage: Vec<Vec<u8>>,
    workgroup: Vec<u8>,
    workgroup_bytes: usize,
    local: Vec<u8>,
    local_bytes: usize,
}

/// `bytes` zeros, or an error where there is not so much memory.
fn zeros(bytes: usize, what: &str) -> Result<Vec<u8>, Error> {
    reserve::<u8>(bytes, what)?;
    // Zeroed pages cost nothing until they are touched; the reservation above has shown that they exist.
    Ok(vec![0; bytes])
}

/// An error unless `count` items can be allocated now.
pub(crate) fn reserve<T>(count: usize, what: &str) -> Result<(), Error> {
    let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
    Vec::<T>::new().try_reserve_exact(count).map_err(|_| Error::OutOfMemory { what: what.to_owned(), bytes })
}

/// The contents of the buffers that the grid shares, before the first pass: the inputs, and zeros.
pub(crate) fn initial(program: &Program, layout: &Layout, inputs: &[&[u8]]) -> Result<Vec<Vec<u8>>, Error> {
    let mut inputs = inputs.iter();
    let shared =
        program.buffers().iter().zip(layout.counts()).filter(|(b, _)| b.access().is_shared_by_grid());
    shared
        .map(|(decl, count)| {
            let mut contents = zeros(*count as usize * decl.element().size(), decl.name())?;
            if let Some(input) = inputs.next_if(decl.consumes_input()) {
                contents.copy_from_slice(input);
            }
            Ok(contents)
        })
        .collect()
}

/// Checks that contents fit the buffers that the grid shares.
pub(crate) fn check(program: &Program, storage: &[Vec<u8>]) -> Result<(), InputError> {
    let shared: Vec<_> = program.buffers().iter().filter(|b| b.access().is_shared_by_grid()).collect();
    if shared.len() != storage.len() {
        return Err(InputError::InputCount { expected: shared.len(), found: storage.len() });
    }
    for (decl, contents) in shared.into_iter().zip(storage) {
        let (bytes, buffer, element) = (contents.len() as u64, decl.name().clone(), decl.element());
        let size = element.size() as u64;
        let count = bytes / size;
        if !bytes.is_multiple_of(size) {
            return Err(InputError::PartialElement { buffer, element, bytes });
        }
        if let Some(expected) = decl.count().filter(|expected| u64::from(*expected) != count) {
            return Err(InputError::WrongCount { buffer, expected, found: count });
        }
        if count > u64::from(u32::MAX) {
            return Err(InputError::TooLong { buffer, count });
        }
    }
    Ok(())
}

impl Memory {
    /// The memory of a program over the contents of the buffers that the grid shares.
    pub(crate) fn new(program: &Program, storage: Vec<Vec<u8>>) -> Memory {
        let mut memory = Memory {
            buffers: Vec::new(),
            storage,
            workgroup: Vec::new(),
            workgroup_bytes: 0,
            local: Vec::new(),
            local_bytes: 0,
        };
        let mut next = 0..;
        for decl in program.buffers() {
            let size = decl.element().size();
            let count = decl.count().unwrap_or(0);
            let bytes = count as usize * size;
            let (count, space) = match decl.access() {
                BufferAccess::Workgroup => {
                    memory.workgroup_bytes += bytes;
                    (count, Space::Workgroup(memory.workgroup_bytes - bytes))
                }
                BufferAccess::Local => {
                    memory.local_bytes += bytes;
                    (count, Space::Local(memory.local_bytes - bytes))
                }
                _ => {
                    let place = next.next().unwrap_or(0);
                    ((memory.storage[place].len() / size) as u32, Space::Storage(place))
                }
            };
            memory.buffers.push(Buffer {
                name: decl.name().clone(),
                access: decl.access(),
                element: decl.element(),
                count,
                space,
            });
        }
        memory
    }

    /// The contents of the buffers that the grid shares.
    pub(crate) fn into_storage(self) -> Vec<Vec<u8>> {
        self.storage
    }

    /// How much workgroup and local memory an invocation needs in a workgroup of this size.
    pub(crate) fn bytes_per_invocation(&self, size: u64) -> u64 {
        self.local_bytes as u64 + self.workgroup_bytes as u64 / size.max(1)
    }

    /// Makes room for the workgroup and local memory of this many workgroups and invocations in flight.
    pub(crate) fn open(&mut self, workgroups: usize, invocations: usize) -> Result<(), Error> {
        self.workgroup = zeros(workgroups.saturating_mul(self.workgroup_bytes), "workgroup memory")?;
        self.local = zeros(invocations.saturating_mul(self.local_bytes), "local memory")?;
        Ok(())
    }

    /// Zeros the workgroup and local memory, for the next workgroups.
    pub(crate) fn clear(&mut self) {
        self.workgroup.fill(0);
        self.local.fill(0);
    }

    /// Zeros what starts as zeros in each pass.
    pub(crate) fn start_pass(&mut self) {
        for buffer in &self.buffers {
            if let (BufferAccess::Scratch, Space::Storage(i)) = (buffer.access, buffer.space) {
                self.storage[i].fill(0);
            }
        }
    }

    /// The contents of the buffers that are carried from pass to pass, which are those that are returned.
    pub(crate) fn carried(&self) -> impl Iterator<Item = &[u8]> {
        self.buffers.iter().filter(|b| b.access.produces_output()).filter_map(|buffer| match buffer.space {
            Space::Storage(i) => Some(&self.storage[i][..]),
            _ => None,
        })
    }

    /// The returned buffers, in declaration order.
    pub(crate) fn into_outputs(mut self) -> Vec<Vec<u8>> {
        let returned = self.buffers.iter().filter(|b| b.access.produces_output());
        let taken = returned.filter_map(|buffer| match buffer.space {
            Space::Storage(i) => Some(std::mem::take(&mut self.storage[i])),
            _ => None,
        });
        taken.collect()
    }

    #[inline]
    pub(crate) fn len(&self, buffer: u32) -> u32 {
        self.buffers[buffer as usize].count
    }

    pub(crate) fn name(&self, buffer: u32) -> &Name {
        &self.buffers[buffer as usize].name
    }

    /// Whether other invocations can see accesses to the buffer.
    #[inline]
    pub(crate) fn is_shared(&self, buffer: u32) -> bool {
        !matches!(self.buffers[buffer as usize].space, Space::Local(_))
    }

    /// The memory from an element on, or nothing outside the buffer.
    #[inline]
    fn at(&mut self, buffer: u32, owner: Owner, index: u64) -> Option<(Element, &mut [u8])> {
        let Buffer { element, count, space, .. } = self.buffers[buffer as usize];
        if index >= u64::from(count) {
            return None;
        }
        let offset = index as usize * element.size();
        let memory = match space {
            Space::Storage(i) => &mut self.storage[i][offset..],
            Space::Workgroup(start) => {
                &mut self.workgroup[owner.workgroup * self.workgroup_bytes + start + offset..]
            }
            Space::Local(start) => &mut self.local[owner.invocation * self.local_bytes + start + offset..],
        };
        Some((element, memory))
    }

    /// The element, or 0 outside the buffer.
    #[inline]
    pub(crate) fn load(&mut self, buffer: u32, owner: Owner, index: u64) -> u64 {
        self.at(buffer, owner, index).map_or(0, |(element, memory)| element::load(element, memory))
    }

    /// Stores the element; nothing outside the buffer.
    #[inline]
    pub(crate) fn store(&mut self, buffer: u32, owner: Owner, index: u64, bits: u64) {
        if let Some((element, memory)) = self.at(buffer, owner, index) {
            element::store(element, bits, memory);
        }
    }

    /// Changes the element and gives what stood there; 0 and no change outside the buffer.
    pub(crate) fn atomic(
        &mut self,
        op: AtomicOp,
        buffer: u32,
        owner: Owner,
        index: u64,
        [expected, value]: [u64; 2],
    ) -> u64 {
        let Some((element, memory)) = self.at(buffer, owner, index) else { return 0 };
        let old = element::load(element, memory);
        let new = arith::atomic(op, element.value_type(), old, expected, value);
        element::store(element, new, memory);
        old
    }
}

/// `next` of an iterator where a condition holds.
trait NextIf: Iterator + Sized {
    fn next_if(&mut self, condition: bool) -> Option<Self::Item> {
        if condition { self.next() } else { None }
    }
}

impl<I: Iterator> NextIf for I {}
