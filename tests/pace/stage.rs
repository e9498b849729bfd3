//! Made-up time with somebody waiting in it: tasks run until all wait, then the clock goes to the next timer.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use poolkeeper::ambient::{Clock, Sleep};
use poolkeeper::model::time::{Span, Time};

pub fn at(ms: i64) -> Time {
    Time::from_millis(ms)
}

#[derive(Debug, Clone, Default)]
pub struct Virtual(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    now: Time,
    timers: BTreeMap<(Time, u64), Waker>,
    last: u64,
}

impl Clock for Virtual {
    fn now(&self) -> Time {
        self.0.lock().unwrap().now
    }
}

impl Sleep for Virtual {
    async fn sleep_until(&self, at: Time) {
        let mine = {
            let mut inner = self.0.lock().unwrap();
            inner.last += 1;
            inner.last
        };
        let _forgets = Timer { time: self.clone(), key: (at, mine) };
        poll_fn(|context| {
            let mut inner = self.0.lock().unwrap();
            if inner.now >= at {
                return Poll::Ready(());
            }
            inner.timers.insert((at, mine), context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

struct Timer {
    time: Virtual,
    key: (Time, u64),
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.time.0.lock().unwrap().timers.remove(&self.key);
    }
}

impl Virtual {
    pub async fn pass(&self, span: Span) {
        let at = self.now().plus(span);
        self.sleep_until(at).await;
    }

    fn next(&self) -> bool {
        let mut inner = self.0.lock().unwrap();
        let Some(((at, _), waker)) = inner.timers.pop_first() else { return false };
        inner.now = inner.now.max(at);
        drop(inner);
        waker.wake();
        true
    }
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
    pub fn run(&mut self, time: &Virtual, until: Time) -> bool {
        loop {
            while self.poll_woken() {}
            let over =
                time.0.lock().unwrap().timers.keys().next().is_none_or(|(at, _)| *at > until);
            if over || !time.next() {
                return self.tasks.iter().all(|(task, _)| task.is_none());
            }
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
