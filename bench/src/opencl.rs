//! OpenCL, for example PoCL, where a library is installed. It is found when the tool runs.
//!
//! The device decides how many threads it uses; `main` asks PoCL for as many as the others get.

use crate::cases::Case;
use crate::contender::{Contender, Platform};
use anyhow::{Context as _, Result, bail};
use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU, Device};
use opencl3::kernel::Kernel;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE, ClMem as _};
use opencl3::platform::get_platforms;
use opencl3::program::Program;
use opencl3::types::{CL_BLOCKING, cl_mem};
use std::ptr;
use std::time::{Duration, Instant};

/// Results must be those of IEEE-754 arithmetic, as everywhere else.
const OPTIONS: &str = "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt";

/// An OpenCL device.
pub(crate) struct OpenCl {
    about: String,
    threads: usize,
    context: Context,
    queue: CommandQueue,
}

impl OpenCl {
    /// The first CPU device there is. A device of another kind is not what the others are compared with.
    pub(crate) fn new(threads: usize) -> Result<OpenCl> {
        let platforms = get_platforms().context("no OpenCL library, or no platform in it")?;
        let mut others = Vec::new();
        for platform in platforms {
            if let Some(id) = platform.get_devices(CL_DEVICE_TYPE_CPU).unwrap_or_default().first() {
                let device = Device::new(*id);
                let context = Context::from_device(&device)?;
                let queue = CommandQueue::create_default(&context, 0)?;
                let about = format!("{}, {}", platform.version()?, device.name()?);
                return Ok(OpenCl { about, threads, context, queue });
            }
            for id in platform.get_devices(CL_DEVICE_TYPE_ALL).unwrap_or_default() {
                others.push(Device::new(id).name().unwrap_or_default());
            }
        }
        bail!("no OpenCL device that is a CPU (found: {others:?})")
    }
}

impl Platform for OpenCl {
    fn name(&self) -> &'static str {
        "opencl"
    }

    fn about(&self) -> String {
        self.about.clone()
    }

    fn threads(&self) -> Vec<usize> {
        vec![self.threads]
    }

    fn prepare<'a>(&'a self, case: &'a Case) -> Result<Box<dyn Contender + 'a>> {
        let program =
            Program::create_and_build_from_source(&self.context, case.text.others()?.opencl, OPTIONS)
                .map_err(|log| anyhow::anyhow!("the kernel does not build: {log}"))?;
        let kernel = Kernel::create(&program, case.text.name)?;
        let mut buffers = Vec::new();
        for (place, buffer) in case.buffers.iter().enumerate() {
            let bytes = buffer.initial.bytes().len();
            // SAFETY: no host memory is given.
            let device: Buffer<u8> =
                unsafe { Buffer::create(&self.context, CL_MEM_READ_WRITE, bytes, ptr::null_mut())? };
            let length = u32::try_from(buffer.initial.len())?;
            let after = case.buffers.len() + place;
            // SAFETY: kernels take all their buffers and then all their lengths, as `kernels/` says.
            unsafe {
                kernel.set_arg::<cl_mem>(place as u32, &device.get())?;
                kernel.set_arg::<u32>(after as u32, &length)?;
            }
            buffers.push(device);
        }
        let mut prepared = Prepared { opencl: self, case, kernel, buffers };
        prepared.write(|_| true)?;
        Ok(Box::new(prepared))
    }
}

struct Prepared<'a> {
    opencl: &'a OpenCl,
    case: &'a Case,
    kernel: Kernel,
    buffers: Vec<Buffer<u8>>,
}

impl Prepared<'_> {
    fn write(&mut self, which: impl Fn(&crate::data::Buffer) -> bool) -> Result<()> {
        let buffers = self.buffers.iter_mut().zip(&self.case.buffers);
        for (device, buffer) in buffers.filter(|(_, buffer)| which(buffer)) {
            // SAFETY: the device's buffer is as long as the bytes, and the call returns when they are copied.
            unsafe {
                self.opencl.queue.enqueue_write_buffer(device, CL_BLOCKING, 0, buffer.initial.bytes(), &[])?
            };
        }
        Ok(())
    }
}

impl Contender for Prepared<'_> {
    fn reset(&mut self) -> Result<()> {
        self.write(crate::data::Buffer::is_result)
    }

    fn run(&mut self, _threads: usize) -> Result<Duration> {
        let [size, groups] = [self.case.workgroup_size, self.case.workgroups];
        let global = [size[0] * groups[0], size[1] * groups[1]];
        let start = Instant::now();
        // SAFETY: all arguments are set, the sizes are read during the call, and kernels stay inside the buffers.
        unsafe {
            self.opencl.queue.enqueue_nd_range_kernel(
                self.kernel.get(),
                2,
                ptr::null(),
                global.as_ptr(),
                size.as_ptr(),
                &[],
            )?
        };
        self.opencl.queue.finish()?;
        Ok(start.elapsed())
    }

    fn results(&mut self) -> Result<Vec<Vec<u8>>> {
        let mut results = Vec::new();
        for (device, buffer) in self.buffers.iter().zip(&self.case.buffers) {
            if buffer.is_result() {
                let mut bytes = vec![0; buffer.initial.bytes().len()];
                // SAFETY: the device's buffer is as long as the bytes, and the call returns when they are copied.
                unsafe { self.opencl.queue.enqueue_read_buffer(device, CL_BLOCKING, 0, &mut bytes, &[])? };
                results.push(bytes);
            }
        }
        Ok(results)
    }
}
