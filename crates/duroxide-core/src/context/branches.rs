//! The branches of a join. Each has a waker of its own, and only those that were woken are polled, in
//! argument order: a join costs what its events cost, however wide it is.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use super::wakeup::Wakeup;

pub(super) struct Branches<F: Future> {
    branches: Vec<Branch<F>>,
    unfinished: usize,
    /// `None` under the rules of old executions, in which no branch is woken and all are polled.
    calls: Option<Arc<Calls>>,
    /// The branches being polled; kept for its memory.
    woken: Vec<usize>,
}

struct Branch<F: Future> {
    /// `None` once finished: it is dropped at once, its value kept.
    future: Option<Pin<Box<F>>>,
    value: Option<F::Output>,
    waker: Option<Waker>,
}

impl<F: Future> Branches<F> {
    pub(super) fn new(futures: Vec<F>, wakeup: Option<&Arc<Wakeup>>) -> Self {
        let unfinished = futures.len();
        let calls = wakeup.map(|wakeup| Arc::new(Calls::to_all(unfinished, Arc::clone(wakeup))));
        let branch = |future| Branch { future: Some(Box::pin(future)), value: None, waker: None };
        let branches = futures.into_iter().map(branch).collect();
        Self { branches, unfinished, calls, woken: Vec::new() }
    }

    /// Polls the branches that were woken; ready once all are finished.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.calls.clone() {
            None => self.branches.iter_mut().for_each(|branch| self.unfinished -= branch.poll(cx)),
            Some(calls) => self.poll_woken(&calls, cx),
        }
        if self.unfinished == 0 { Poll::Ready(()) } else { Poll::Pending }
    }

    fn poll_woken(&mut self, calls: &Arc<Calls>, cx: &mut Context<'_>) {
        let mut woken = std::mem::take(&mut self.woken);
        calls.answer(cx.waker(), &mut woken);
        // Events come one at a time. What the code itself wakes at once may come in any order: tokio's
        // `watch` and `Barrier` wake waiters at random, and no replay would repeat that.
        woken.sort_unstable();
        for index in woken.drain(..) {
            let branch = &mut self.branches[index];
            let waker = branch.waker.take().unwrap_or_else(|| calls.waker_of(index));
            self.unfinished -= branch.poll(&mut Context::from_waker(&waker));
            branch.waker = Some(waker);
        }
        self.woken = woken;
    }

    /// The values, in order.
    pub(super) fn into_values(self) -> Vec<F::Output> {
        self.branches.into_iter().filter_map(|branch| branch.value).collect()
    }
}

impl<F: Future> Branch<F> {
    /// Polls it, if it is unfinished; how many finished by that.
    fn poll(&mut self, cx: &mut Context<'_>) -> usize {
        let Some(future) = &mut self.future else { return 0 };
        let Poll::Ready(value) = future.as_mut().poll(cx) else { return 0 };
        self.future = None;
        self.value = Some(value);
        1
    }
}

/// Which branches were woken since they were last polled.
struct Calls {
    wakeup: Arc<Wakeup>,
    pending: Mutex<Pending>,
}

struct Pending {
    /// In the order of their wakes, each once.
    woken: Vec<usize>,
    is_woken: Vec<bool>,
    /// What to wake when the first branch is; `None` once that is done.
    join: Option<Waker>,
}

impl Calls {
    /// All branches are due.
    fn to_all(branches: usize, wakeup: Arc<Wakeup>) -> Self {
        let woken = (0..branches).collect();
        let pending = Pending { woken, is_woken: vec![true; branches], join: None };
        Self { wakeup, pending: Mutex::new(pending) }
    }

    fn waker_of(self: &Arc<Self>, index: usize) -> Waker {
        Waker::from(Arc::new(BranchWaker { index, calls: Arc::clone(self) }))
    }

    /// Takes the branches that were woken; `join` is called for branches woken from now on.
    fn answer(&self, join: &Waker, woken: &mut Vec<usize>) {
        let join = join.clone();
        let mut pending = self.locked();
        std::mem::swap(&mut pending.woken, woken);
        for index in &*woken {
            pending.is_woken[*index] = false;
        }
        let before = pending.join.replace(join);
        drop(pending);
        drop(before); // A waker may run any code: not under the lock.
    }

    fn call(&self, index: usize) {
        if !self.wakeup.counts() {
            return;
        }
        let mut pending = self.locked();
        if std::mem::replace(&mut pending.is_woken[index], true) {
            return;
        }
        pending.woken.push(index);
        let join = pending.join.take();
        drop(pending);
        if let Some(join) = join {
            join.wake();
        }
    }

    fn locked(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct BranchWaker {
    index: usize,
    calls: Arc<Calls>,
}

impl Wake for BranchWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.calls.call(self.index);
    }
}
