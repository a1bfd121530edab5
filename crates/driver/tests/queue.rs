//! The order of batches, cancellation and shutdown, without a device.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};
use vyre_driver::{Batch, Deadline, Error, Outcome, Queue, Stop};

/// A batch that says which one it is.
fn numbered(number: usize) -> Batch<'static> {
    Batch { threads: Some(number), ..Batch::default() }
}

/// Sleeps until the flag is set or the deadline has passed.
fn endless(stop: &Stop, deadline: Deadline) -> Result<Outcome, Error> {
    loop {
        stop.check(deadline)?;
        thread::sleep(Duration::from_millis(1));
    }
}

fn endless_queue() -> Queue {
    Queue::new("toy", |_, stop, deadline| endless(stop, deadline))
}

#[test]
fn batches_of_a_thread_run_in_order_and_a_run_comes_after_them() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&seen);
    let queue = Queue::new("toy", move |batch: Batch<'static>, _, _| {
        thread::sleep(Duration::from_micros(100));
        record.lock().unwrap().push(batch.threads);
        Ok(Outcome::default())
    });
    let pending: Vec<_> = (0..100).map(|i| queue.submit(numbered(i), Deadline::NEVER).unwrap()).collect();
    queue.run(Deadline::NEVER, |_| Ok(())).unwrap();
    assert!(pending.iter().all(|p| p.is_ready()));
    assert_eq!(*seen.lock().unwrap(), (0..100).map(Some).collect::<Vec<_>>());
}

#[test]
fn threads_do_not_wait_for_each_other() {
    let queue = Arc::new(Queue::new("toy", |batch: Batch<'static>, stop, deadline| match batch.threads {
        None => endless(stop, deadline),
        Some(_) => Ok(Outcome::default()),
    }));
    let stuck = queue.submit(Batch::default(), Deadline::NEVER).unwrap();
    let other = Arc::clone(&queue);
    let finished = thread::spawn(move || {
        other.run(Deadline::NEVER, |_| Ok(())).unwrap();
        other.submit(numbered(1), Deadline::NEVER).unwrap().wait(Deadline::NEVER)
    });
    assert_eq!(finished.join().unwrap(), Ok(Outcome::default()));
    assert!(!stuck.is_ready());
    let soon = Deadline::after(Duration::from_millis(20));
    assert_eq!(queue.run(soon, |_| Ok(())), Err(soon.error()));
    stuck.cancel();
    assert_eq!(stuck.wait(Deadline::NEVER), Err(Error::Cancelled));
    assert_eq!(queue.run(Deadline::NEVER, |_| Ok(7)), Ok(7));
}

#[test]
fn dropping_cancels_and_waiting_too_long_stops() {
    let queue = endless_queue();
    drop(queue.submit(Batch::default(), Deadline::NEVER).unwrap());
    queue.run(Deadline::after(Duration::from_secs(20)), |_| Ok(())).unwrap();
    let pending = queue.submit(Batch::default(), Deadline::NEVER).unwrap();
    let soon = Deadline::after(Duration::from_millis(10));
    assert_eq!(pending.wait(soon), Err(soon.error()));
    queue.run(Deadline::after(Duration::from_secs(20)), |_| Ok(())).unwrap();
}

#[test]
fn a_submitted_batch_ends_at_its_deadline() {
    let queue = endless_queue();
    let deadline = Deadline::after(Duration::from_millis(10));
    let pending = queue.submit(Batch::default(), deadline).unwrap();
    assert_eq!(pending.wait(Deadline::NEVER), Err(deadline.error()));
}

#[test]
fn a_panic_is_an_error_and_the_queue_goes_on() {
    let queue = Queue::new("toy", |batch: Batch<'static>, _, _| match batch.threads {
        None => panic!("broken"),
        Some(_) => Ok(Outcome::default()),
    });
    let broken = queue.submit(Batch::default(), Deadline::NEVER).unwrap().wait(Deadline::NEVER);
    assert!(matches!(broken, Err(Error::Internal(what)) if what.contains("broken")));
    assert!(queue.submit(numbered(1), Deadline::NEVER).unwrap().wait(Deadline::NEVER).is_ok());
    let here = queue.run(Deadline::NEVER, |_| -> Result<(), Error> { panic!("here {}", 1) });
    assert!(matches!(here, Err(Error::Internal(what)) if what.contains("here 1")));
    queue.shutdown(Deadline::NEVER).unwrap();
}

#[test]
fn shutdown_waits_for_what_runs_and_refuses_the_rest() {
    let queue = Arc::new(endless_queue());
    let (started, has_started) = mpsc::channel();
    let (end, may_end) = mpsc::channel::<()>();
    let other = Arc::clone(&queue);
    let running = thread::spawn(move || {
        other.run(Deadline::NEVER, |_| {
            started.send(()).unwrap();
            may_end.recv().unwrap();
            Ok(())
        })
    });
    has_started.recv().unwrap();
    let soon = Deadline::after(Duration::from_millis(10));
    assert_eq!(queue.shutdown(soon), Err(soon.error()));
    let refused = Err(Error::ShutDown { backend: "toy" });
    assert_eq!(queue.run(Deadline::NEVER, |_| Ok(())), refused);
    assert_eq!(queue.submit(Batch::default(), Deadline::NEVER).map(|_| ()), refused);
    end.send(()).unwrap();
    queue.shutdown(Deadline::NEVER).unwrap();
    assert_eq!(running.join().unwrap(), Ok(()));
}

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Count>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn wakers_are_woken_once_the_result_is_there() {
    let queue = endless_queue();
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&count));
    let pending = queue.submit(Batch::default(), Deadline::NEVER).unwrap();
    pending.wake(&waker);
    pending.wake(&waker);
    assert_eq!(count.0.load(Ordering::SeqCst), 0);
    pending.cancel();
    let start = Instant::now();
    while count.0.load(Ordering::SeqCst) == 0 && start.elapsed() < Duration::from_secs(20) {
        thread::yield_now();
    }
    assert!(pending.is_ready());
    assert_eq!(pending.wait(Deadline::NEVER), Err(Error::Cancelled));
    assert!(matches!(pending.wait(Deadline::NEVER), Err(Error::Config { .. })));
    pending.wake(&waker);
    assert_eq!(count.0.load(Ordering::SeqCst), 2);
}

#[test]
fn many_threads_submit_and_run() {
    let executed = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&executed);
    let queue = Queue::new("toy", move |_: Batch<'static>, _, _| {
        counter.fetch_add(1, Ordering::SeqCst);
        Ok(Outcome::default())
    });
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for i in 0..500 {
                    let pending = queue.submit(Batch::default(), Deadline::NEVER).unwrap();
                    if i % 3 == 0 {
                        queue.run(Deadline::NEVER, |_| Ok(())).unwrap();
                    }
                    assert_eq!(pending.wait(Deadline::NEVER), Ok(Outcome::default()));
                }
            });
        }
    });
    assert_eq!(executed.load(Ordering::SeqCst), 4000);
    queue.shutdown(Deadline::NEVER).unwrap();
}

#[test]
fn what_was_submitted_outlives_its_queue() {
    let queue = Queue::new("toy", |_: Batch<'static>, _, _| {
        thread::sleep(Duration::from_millis(5));
        Ok(Outcome::default())
    });
    let pending: Vec<_> = (0..5).map(|_| queue.submit(Batch::default(), Deadline::NEVER).unwrap()).collect();
    drop(queue);
    for pending in pending {
        assert_eq!(pending.wait(Deadline::after(Duration::from_secs(20))), Ok(Outcome::default()));
    }
}
