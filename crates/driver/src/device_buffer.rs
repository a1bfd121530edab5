//! Typed resident memory that frees itself.

use crate::backend::VyreBackend;
use crate::error::{Error, Result};
use crate::handle::RawHandle;
use crate::resident;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use vyre_foundation::Element;

/// A type whose values can stand in a [`DeviceBuffer`].
pub trait DeviceElement: Copy + Send + Sync + 'static {
    /// The element of the buffers that it fits. `u16` also fits `f16` and `bf16`, as bits.
    const ELEMENT: Element;

    /// The bytes of values, as they stand in memory.
    fn to_bytes(values: &[Self]) -> Vec<u8>;

    /// The values of bytes; an incomplete one at the end is left out.
    fn from_bytes(bytes: &[u8]) -> Vec<Self>;
}

macro_rules! elements {
    ($($type:ty => $element:ident),*) => {$(
        impl DeviceElement for $type {
            const ELEMENT: Element = Element::$element;

            fn to_bytes(values: &[$type]) -> Vec<u8> {
                values.iter().flat_map(|value| value.to_le_bytes()).collect()
            }

            fn from_bytes(bytes: &[u8]) -> Vec<$type> {
                let (values, _) = bytes.as_chunks();
                values.iter().map(|value| <$type>::from_le_bytes(*value)).collect()
            }
        }
    )*};
}

elements!(
    u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, u64 => U64, i64 => I64, f32 => F32
);

/// Resident memory that a dispatch can bind.
pub trait DeviceMemory {
    /// Its handle.
    fn handle(&self) -> RawHandle;

    /// What it holds, where that is known.
    fn element(&self) -> Option<Element>;
}

impl DeviceMemory for RawHandle {
    fn handle(&self) -> RawHandle {
        *self
    }

    fn element(&self) -> Option<Element> {
        None
    }
}

impl<T: DeviceElement> DeviceMemory for DeviceBuffer<T> {
    fn handle(&self) -> RawHandle {
        self.handle
    }

    fn element(&self) -> Option<Element> {
        Some(T::ELEMENT)
    }
}

/// Typed resident memory. It frees itself when it is dropped.
///
/// ```
/// # use std::sync::Arc;
/// # use vyre_driver::{BackendExt, DispatchConfig, ReferenceBackend};
/// # use vyre_foundation::Program;
/// let text = "program p { buffer a: read f32[]; buffer o: output f32[]; o[global_id.x] = a[global_id.x] * 2.0; }";
/// let program = Program::parse(text).unwrap();
/// let backend = Arc::new(ReferenceBackend::new());
/// let a = backend.device_buffer_from(&[1.0f32, 2.5])?;
/// let o = backend.device_buffer::<f32>(2)?;
/// backend.dispatch_with_device_buffers(&program, &[&a, &o], &DispatchConfig::new())?;
/// assert_eq!(o.download()?, [2.0, 5.0]);
/// # Ok::<(), vyre_driver::Error>(())
/// ```
pub struct DeviceBuffer<T> {
    backend: Arc<dyn VyreBackend>,
    handle: RawHandle,
    holds: PhantomData<fn() -> T>,
}

impl<T: DeviceElement> DeviceBuffer<T> {
    pub(crate) fn new(backend: Arc<dyn VyreBackend>, len: usize) -> Result<DeviceBuffer<T>> {
        let bytes = (len as u64).checked_mul(size_of::<T>() as u64);
        let too_long =
            || Error::OutOfMemory { what: "a device buffer".to_owned(), asked: u64::MAX, available: None };
        let handle = backend.allocate(bytes.ok_or_else(too_long)?)?;
        Ok(DeviceBuffer { backend, handle, holds: PhantomData })
    }

    /// How many values it holds.
    pub fn len(&self) -> usize {
        (self.handle.bytes() / size_of::<T>() as u64) as usize
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Replaces all values.
    pub fn upload(&self, values: &[T]) -> Result<()> {
        let bytes = T::to_bytes(values);
        resident::check_size(self.handle, &bytes)?;
        resident::upload(&*self.backend, [(self.handle, 0, &bytes[..])].into_iter())
    }

    /// All values.
    pub fn download(&self) -> Result<Vec<T>> {
        let bytes = resident::download(&*self.backend, &[self.handle.into()])?;
        self.backend.telemetry().bytes_out(self.handle.bytes());
        Ok(bytes.first().map(|bytes| T::from_bytes(bytes)).unwrap_or_default())
    }
}

impl<T> fmt::Debug for DeviceBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DeviceBuffer").field(&self.handle).finish()
    }
}

impl<T> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        // Of a device that was recovered since, the memory is gone already.
        let _ = self.backend.free(self.handle);
    }
}
