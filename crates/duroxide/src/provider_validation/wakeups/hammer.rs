//! Many who send and many who wait: nothing lies there while somebody waits for it.

use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio::time::timeout;

use super::super::ProviderFactory;
use super::super::concurrency::cast;
use super::super::lab::{Lab, Promise, Turn, lab};
use super::super::words::*;
use super::work::wait_for_work;
use super::{POLL, SECTION, wait_for_turn, waited};

const SENDERS: usize = 2;
const WAITERS: usize = 4;
/// Things each sender sends, one after the other: each is served before the next comes, so that
/// there is always somebody who waits, and a call that was missed is noticed.
const EACH: usize = 40;

/// Every turn finds somebody who waits.
pub async fn no_turn_is_left_while_somebody_waits<F: ProviderFactory>(factory: &F) {
    let says = "with many who send and many who wait every turn is fetched at once, and once";
    let lab = lab(factory, Promise { rule: "R8.33", says, section: SECTION }).await.patient();
    let board = Arc::new(Board::new());
    cast(&lab, SENDERS + WAITERS, move |lab, role| {
        let board = Arc::clone(&board);
        async move {
            if role < SENDERS {
                for number in board.numbers_of(role) {
                    lab.send(start(&number.to_string())).await;
                    board.is_served(&lab, number).await;
                }
                for waiter in board.dismissed() {
                    lab.send(start(&waiter.to_string())).await;
                }
            } else {
                while let Some(turn) = awhile(&lab, wait_for_turn(&lab)).await {
                    lab.committed(&turn, first_commit(&turn.item.instance)).await;
                    if !board.serve(&lab, turn.item.instance.parse().unwrap()) {
                        break;
                    }
                }
            }
        }
    })
    .await;
    lab.no_turn().await;
}

/// Every activity finds somebody who waits.
pub async fn no_work_is_left_while_somebody_waits<F: ProviderFactory>(factory: &F) {
    let says = "with many who send and many who wait every activity is fetched at once, and once";
    let lab = lab(factory, Promise { rule: "R8.33", says, section: SECTION }).await.patient();
    let board = Arc::new(Board::new());
    cast(&lab, SENDERS + WAITERS, move |lab, role| {
        let board = Arc::clone(&board);
        async move {
            if role < SENDERS {
                for number in board.numbers_of(role) {
                    lab.queue(activity("a", number as u64)).await;
                    board.is_served(&lab, number).await;
                }
                for waiter in board.dismissed() {
                    lab.queue(activity("a", waiter as u64)).await;
                }
            } else {
                while let Some(job) = awhile(&lab, wait_for_work(&lab)).await {
                    lab.answered(&job, None).await;
                    if !board.serve(&lab, job.id() as usize) {
                        break;
                    }
                }
            }
        }
    })
    .await;
    lab.no_job().await;
}

/// A fetch that is dropped while it is called takes nothing with it for long.
pub async fn a_dropped_wait_takes_nothing_along<F: ProviderFactory>(factory: &F) {
    let says = "what woke a fetch that was dropped is fetched by another who waits";
    let lab = lab(factory, Promise { rule: "R8.33", says, section: SECTION }).await;
    lab.begin("a").await;
    for round in 0..20 {
        let (mut dropped, mut other) = (lab.clone(), lab.patient());
        if round % 2 == 0 {
            std::mem::swap(&mut dropped, &mut other); // whoever came first
        }
        let first = tokio::spawn(wait_with(dropped));
        let second = tokio::spawn(wait_with(other));
        if round % 4 < 2 {
            tokio::task::yield_now().await; // both wait now, if the store is quick
        }
        lab.send(raise("a", "x")).await;
        let (dropped, other) = if round % 2 == 0 { (second, first) } else { (first, second) };
        dropped.abort();
        // The dropped one may have had the lock, which then has to run out.
        let Ok(Ok(turn)) = timeout(lab.patience, other).await else {
            lab.broken("the other who waits to get the turn", "nothing")
        };
        lab.batch(&turn, [raise("a", "x")]);
        lab.committed(&turn, commit()).await;
    }
}

/// Waits for a turn, to be locked as long as locks last in this lab.
async fn wait_with(lab: Lab) -> Turn {
    let fetched = lab.fetch_orchestration_item(lab.lock, POLL, None).await;
    let (item, token, attempt) = waited(&lab, "fetch_orchestration_item", fetched);
    Turn { item, token, attempt }
}

/// Waits for something, but not for ever: if it never comes, who sends it says so.
async fn awhile<T>(lab: &Lab, waits: impl Future<Output = T>) -> Option<T> {
    timeout(lab.patience * 3, waits).await.ok()
}

/// What was served, and who still sends.
struct Board {
    served: Vec<(AtomicUsize, Notify)>,
    sending: AtomicUsize,
}

impl Board {
    fn new() -> Self {
        let served = (0..=SENDERS * EACH).map(|_| (AtomicUsize::new(0), Notify::new()));
        Self { served: served.collect(), sending: AtomicUsize::new(SENDERS) }
    }

    /// Numbers from 1 on, each of one sender.
    fn numbers_of(&self, sender: usize) -> impl Iterator<Item = usize> + use<> {
        (1..=EACH).map(move |number| sender * EACH + number)
    }

    /// Somebody must serve this soon.
    async fn is_served(&self, lab: &Lab, number: usize) {
        let served = timeout(lab.patience, self.served[number].1.notified()).await;
        let expected = format!("number {number} to be fetched by one of those who wait");
        lab.expect(served.is_ok(), &expected, "nothing");
    }

    /// Notes that this was served, once; whether there is more to serve.
    fn serve(&self, lab: &Lab, number: usize) -> bool {
        let Some((times, bell)) = self.served.get(number) else { return false };
        let before = times.fetch_add(1, Ordering::SeqCst);
        lab.same(&format!("how often number {number} was served before"), before, 0);
        bell.notify_one();
        true
    }

    /// Numbers that send the waiters home, for the last sender.
    fn dismissed(&self) -> Range<usize> {
        let last = self.sending.fetch_sub(1, Ordering::SeqCst) == 1;
        let first = self.served.len();
        first..first + if last { WAITERS } else { 0 }
    }
}
