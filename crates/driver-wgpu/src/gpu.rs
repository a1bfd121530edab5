//! An open device: its errors as typed ones, its work waited for, its memory pooled.

use crate::NAME;
use crate::memory::{ALIGNMENT, Pool};
use crate::timer::Timer;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use vyre_driver::cache::DiskCache;
use vyre_driver::{Deadline, Error, Result, Stop};
use wgpu::{ErrorFilter, PollError, PollType, SubmissionIndex};

/// How long a wait lasts before it looks whether anybody still wants the result.
const GLANCE: Duration = Duration::from_millis(10);
/// The same where others wait for their turn to submit.
const SHORT_GLANCE: Duration = Duration::from_micros(200);
/// How long a batch waits for work that was abandoned before it is refused.
const GRACE: Duration = Duration::from_millis(500);

/// A device in use. Recovery opens another one; work in flight keeps its own.
pub(crate) struct Gpu {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) info: wgpu::AdapterInfo,
    pub(crate) limits: wgpu::Limits,
    pub(crate) pool: Pool,
    /// Timers that no batch uses.
    pub(crate) timers: Mutex<Vec<Timer>>,
    /// What outlives the process.
    pub(crate) disk: Option<Arc<DiskCache>>,
    /// The backend that it belongs to. Another one has other devices, whose objects it cannot use.
    pub(crate) backend_id: u64,
    /// Which device of the backend this is, from 0.
    pub(crate) epoch: u64,
    /// Held while the device is polled or given work. A poll that gives up waiting, while another one or a submission
    /// clears what has ended, makes wgpu panic.
    polling: Mutex<()>,
    /// How many batches run.
    running: AtomicUsize,
    lost: Arc<AtomicBool>,
    /// Errors that happened where nobody asked.
    uncaught: Arc<Mutex<Option<String>>>,
    /// For each batch that was given up, whether the device has come to its end.
    abandoned: Mutex<Vec<Arc<AtomicBool>>>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gpu {
    pub(crate) fn new(
        device: wgpu::Device,
        queue: wgpu::Queue,
        info: wgpu::AdapterInfo,
        backend_id: u64,
    ) -> Gpu {
        let lost: Arc<AtomicBool> = Arc::default();
        let uncaught: Arc<Mutex<Option<String>>> = Arc::default();
        let flag = Arc::clone(&lost);
        device.set_device_lost_callback(move |reason, message| {
            match reason {
                // Also when nobody uses it any more.
                wgpu::DeviceLostReason::Destroyed => tracing::debug!("the device is closed"),
                reason => tracing::warn!(?reason, message, "the device is lost"),
            }
            flag.store(true, Ordering::Release);
        });
        let errors = Arc::clone(&uncaught);
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            tracing::error!(%error, "an error of the device that nobody asked for");
            lock(&errors).get_or_insert_with(|| one_line(&error));
        }));
        let limits = device.limits();
        Gpu {
            device,
            queue,
            info,
            limits,
            pool: Pool::default(),
            timers: Mutex::default(),
            disk: None,
            backend_id,
            epoch: 0,
            polling: Mutex::default(),
            running: AtomicUsize::new(0),
            lost,
            uncaught,
            abandoned: Mutex::default(),
        }
    }

    /// The device and its driver, as a name under which things are kept.
    pub(crate) fn name(&self) -> String {
        name(&self.info)
    }

    /// Whether the driver gives its code back, so that it can be kept.
    pub(crate) fn keeps_code(&self) -> bool {
        self.disk.is_some() && self.device.features().contains(wgpu::Features::PIPELINE_CACHE)
    }

    /// The largest buffer. Ours are padded, so it is a multiple of that.
    pub(crate) fn max_buffer_bytes(&self) -> u64 {
        self.limits.max_buffer_size / ALIGNMENT * ALIGNMENT
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// An error where the device cannot be used.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_lost() {
            return Err(Error::DeviceLost { backend: NAME });
        }
        match lock(&self.uncaught).take() {
            Some(error) => Err(Error::Internal(error)),
            None => Ok(()),
        }
    }

    /// Loses the device.
    pub(crate) fn destroy(&self) {
        self.device.destroy();
        self.lost.store(true, Ordering::Release);
        let _ = self.poll(PollType::Poll);
    }

    /// Does work with the device; its errors become ours. `what` and `asked` are for memory that there is not.
    pub(crate) fn guarded<T>(&self, what: &str, asked: u64, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let memory = self.device.push_error_scope(ErrorFilter::OutOfMemory);
        let internal = self.device.push_error_scope(ErrorFilter::Internal);
        let validation = self.device.push_error_scope(ErrorFilter::Validation);
        let made = work();
        let validation = pollster::block_on(validation.pop());
        let internal = pollster::block_on(internal.pop());
        let memory = pollster::block_on(memory.pop());
        // On a lost device everything fails somehow, and only this says why.
        self.check()?;
        let made = made?;
        if memory.is_some() {
            return Err(Error::OutOfMemory { what: what.to_owned(), asked, available: None });
        }
        match internal.or(validation) {
            Some(error) => Err(Error::Internal(one_line(&error))),
            None => Ok(made),
        }
    }

    /// Polls the device. wgpu panics here when the device is lost meanwhile; that is an error like others.
    fn poll(&self, how: PollType) -> Result<bool> {
        let polling = lock(&self.polling);
        let polled = catch_unwind(AssertUnwindSafe(|| self.device.poll(how)));
        drop(polling);
        match polled {
            Ok(Ok(_)) => Ok(true),
            Ok(Err(PollError::Timeout)) => Ok(false),
            Ok(Err(error)) => {
                self.check()?;
                Err(Error::Internal(error.to_string()))
            }
            Err(_) => {
                self.lost.store(true, Ordering::Release);
                Err(Error::DeviceLost { backend: NAME })
            }
        }
    }

    /// Counts a batch while it runs.
    pub(crate) fn running(&self) -> Running<'_> {
        self.running.fetch_add(1, Ordering::Relaxed);
        Running(self)
    }

    /// Gives the device work.
    pub(crate) fn submit(&self, commands: wgpu::CommandBuffer) -> SubmissionIndex {
        let _polling = lock(&self.polling);
        self.queue.submit([commands])
    }

    /// Waits for a submission, as long as somebody wants it.
    pub(crate) fn wait(&self, index: &SubmissionIndex, stop: &Stop, deadline: Deadline) -> Result<()> {
        loop {
            let is_alone = self.running.load(Ordering::Relaxed) < 2;
            let glance = if is_alone { GLANCE } else { SHORT_GLANCE };
            let glance = deadline.remaining().map_or(glance, |left| left.min(glance));
            let how = PollType::Wait { submission_index: Some(index.clone()), timeout: Some(glance) };
            if self.poll(how)? {
                return self.check();
            }
            self.check()?;
            stop.check(deadline)?;
            if !is_alone {
                // Others want to submit.
                std::thread::yield_now();
            }
        }
    }

    /// Lets callbacks run whose time has come.
    pub(crate) fn attend(&self) -> Result<()> {
        self.poll(PollType::Poll).map(|_| ())
    }

    /// Notes that nobody waits any more for what has been submitted.
    pub(crate) fn abandon(&self) {
        let done: Arc<AtomicBool> = Arc::default();
        let flag = Arc::clone(&done);
        self.queue.on_submitted_work_done(move || flag.store(true, Ordering::Release));
        lock(&self.abandoned).push(done);
    }

    /// Whether work that was given up still runs.
    fn is_busy(&self) -> bool {
        let mut abandoned = lock(&self.abandoned);
        abandoned.retain(|done| !done.load(Ordering::Acquire));
        !abandoned.is_empty()
    }

    /// Waits a moment for work that was given up, and refuses more while it runs.
    pub(crate) fn ready(&self, stop: &Stop, deadline: Deadline) -> Result<()> {
        self.check()?;
        let start = Instant::now();
        while self.is_busy() {
            self.attend()?;
            self.check()?;
            stop.check(deadline)?;
            if !self.is_busy() {
                break;
            }
            if start.elapsed() > GRACE {
                return Err(Error::Busy { backend: NAME });
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

/// A device and its driver, as a name under which things are kept.
pub(crate) fn name(info: &wgpu::AdapterInfo) -> String {
    let wgpu::AdapterInfo { name, backend, driver, driver_info, .. } = info;
    format!("{name} ({backend}, {driver} {driver_info})")
}

/// A batch that runs.
pub(crate) struct Running<'g>(&'g Gpu);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        let _ = self.attend();
        if self.is_busy() {
            // Closing the queue waits until it is empty, which a launch that does not end never lets it be.
            std::mem::forget((self.device.clone(), self.queue.clone()));
        }
    }
}

/// The text of an error, without the line breaks of its chain of causes.
fn one_line(error: &wgpu::Error) -> String {
    let mut text = error.to_string();
    if let wgpu::Error::OutOfMemory { source } = error {
        text = format!("{text}: {source}");
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
