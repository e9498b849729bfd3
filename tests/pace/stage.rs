//! Made-up time with somebody waiting in it: tasks run until all wait, then the clock goes to the next timer.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use poolkeeper::model::time::Time;

use crate::support::clock::TimerClock;

pub fn at(ms: i64) -> Time {
    Time::from_millis(ms)
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

type Task<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Tasks, each polled only when it was woken.
#[derive(Default)]
pub struct Stage<'a> {
    tasks: Vec<(Option<Task<'a>>, Arc<Flag>)>,
}

impl<'a> Stage<'a> {
    pub fn put(&mut self, task: impl Future<Output = ()> + 'a) -> usize {
        self.tasks.push((Some(Box::pin(task)), Arc::new(Flag(AtomicBool::new(true)))));
        self.tasks.len() - 1
    }

    /// Cut it off where it stands.
    pub fn cut(&mut self, task: usize) {
        self.tasks[task].0 = None;
    }

    /// Until the time is passed, or nothing is left to happen. Tells whether all tasks ended.
    pub fn run(&mut self, time: &TimerClock, until: Time) -> bool {
        loop {
            while self.poll_woken() {}
            if time.next().is_none_or(|at| at > until) {
                return self.tasks.iter().all(|(task, _)| task.is_none());
            }
            time.advance();
        }
    }

    fn poll_woken(&mut self) -> bool {
        let mut polled = false;
        for (slot, flag) in &mut self.tasks {
            let Some(task) = slot.as_mut() else { continue };
            if !flag.0.swap(false, Ordering::SeqCst) {
                continue;
            }
            polled = true;
            let waker = Waker::from(Arc::clone(flag));
            if task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                *slot = None;
            }
        }
        polled
    }
}
