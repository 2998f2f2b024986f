//! Random operations among long polls of all kinds: once everybody who was called has come, nobody
//! waits for something that is there (R8.32, R8.33).

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use duroxide_core::model::WorkItem;
use tokio::task::JoinHandle;

use super::super::Inner;
use super::lab::*;
use crate::providers::{Provider, TagFilter};
use crate::random::Random;

/// A crowd of polls and what they got.
struct Crowd {
    lab: Lab,
    random: Random,
    polls: Vec<JoinHandle<()>>,
    tokens: std::sync::Arc<Mutex<Vec<String>>>,
    next_id: u64,
}

impl Crowd {
    fn new(seed: u64) -> Self {
        let (polls, tokens) = (Vec::new(), Default::default());
        Self { lab: lab(), random: Random::seeded(seed), polls, tokens, next_id: 0 }
    }

    fn pick(&self, below: usize) -> usize {
        (self.random.next_u64() % below as u64) as usize
    }

    fn some_token(&self) -> Option<String> {
        let tokens = self.tokens.lock().unwrap();
        (!tokens.is_empty()).then(|| tokens[self.pick(tokens.len())].clone())
    }

    fn poll_work(&mut self) {
        let filters = [TagFilter::Any, TagFilter::DefaultOnly, TagFilter::tags(["x"])];
        let tags = filters[self.pick(3)].clone();
        let session = [None, Some("w1"), Some("w2")][self.pick(3)].map(lease);
        let (lab, tokens) = (self.lab.clone(), self.tokens.clone());
        self.polls.push(tokio::spawn(async move {
            let taken = lab.fetch_work_item(LOCK, LONG * 1000, session.as_ref(), &tags).await;
            tokens.lock().unwrap().extend(taken.unwrap().map(|(_, token, _)| token));
        }));
    }

    fn poll_turns(&mut self) {
        let range = [None, Some("1.0.0"), Some("2.0.0")][self.pick(3)];
        let filter = range.map(|version| versions(version, version));
        let (lab, tokens) = (self.lab.clone(), self.tokens.clone());
        self.polls.push(tokio::spawn(async move {
            let taken = lab.fetch_turn(LOCK, LONG * 1000, filter.as_ref()).await;
            tokens.lock().unwrap().extend(taken.unwrap().map(|turn| turn.lock_token));
        }));
    }

    fn drop_a_poll(&mut self) {
        self.polls.retain(|poll| !poll.is_finished());
        if !self.polls.is_empty() {
            let victim = self.pick(self.polls.len());
            self.polls.swap_remove(victim).abort();
        }
    }

    async fn queue_work(&mut self) {
        self.next_id += 1;
        let mut item = activity("a", self.next_id);
        if let WorkItem::ActivityExecute { tag, session_id, .. } = &mut item {
            *tag = [None, Some("x")][self.pick(2)].map(Into::into);
            *session_id = [None, Some("s"), Some("t")][self.pick(3)].map(Into::into);
        }
        self.lab.queue(item).await;
    }

    async fn touch_work(&mut self) {
        let Some(token) = self.some_token() else { return };
        let delay = [None, Some(Duration::from_millis(20))][self.pick(2)];
        // Whether the token is still good does not matter here.
        drop(match self.pick(3) {
            0 => self.lab.ack_work_item(&token, None).await,
            1 => self.lab.abandon_work_item(&token, delay, false).await,
            _ => self.lab.renew_work_item_lock(&token, LOCK).await,
        });
        if self.pick(4) == 0 {
            self.lab.renew_session_lock(&["w1"], LOCK, LONG).await.unwrap();
            self.lab.cleanup_orphaned_sessions(LONG).await.unwrap();
        }
    }

    async fn send(&mut self) {
        let instance = format!("i{}", self.pick(6));
        let item = match self.pick(3) {
            0 => start(&instance),
            1 => queue_message(&instance, "m"),
            _ => raise(&instance, "x"),
        };
        self.lab.send_later(item, [0, 0, 20][self.pick(3)]).await;
    }

    async fn touch_turn(&mut self) {
        let Some(token) = self.some_token() else { return };
        let delay = [None, Some(Duration::from_millis(20))][self.pick(2)];
        let pin = ["1.0.0", "2.0.0"][self.pick(2)];
        let commit = commit().named("Orch", "1.0.0").pinned(pin).message(raise("i0", "y"));
        drop(match self.pick(3) {
            0 => self.lab.commit_turn(&token, commit).await.map_err(|rejected| rejected.error),
            1 => self.lab.abandon_orchestration_item(&token, delay, false).await,
            _ => self.lab.renew_orchestration_item_lock(&token, LOCK).await,
        });
    }

    /// Looks without letting the store notice that time has passed: that is the polls' business.
    fn look<R>(&self, look: impl FnOnce(&Inner) -> R) -> R {
        look(&self.lab.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn come_to_rest(&self) {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        while !self.look(|inner| inner.turn_polls.is_quiet() && inner.work_polls.is_quiet()) {
            tokio::task::yield_now().await;
        }
    }

    fn assert_nobody_starves(&self, step: usize) {
        self.look(|inner| {
            let state = &inner.state;
            let work = &state.work;
            for wants in inner.work_polls.idle_wants() {
                let missed = work.rows.iter().find(|(_, row)| wants.admits(work, row));
                assert!(missed.is_none(), "step {step}: {wants:?} waits, and misses {missed:?}");
            }
            for wants in inner.turn_polls.idle_wants() {
                let missed = state.messages.oldest_runnable(|pin| wants.accepts(pin));
                assert!(missed.is_none(), "step {step}: {wants:?} waits, and misses {missed:?}");
            }
            let now = self.lab.now();
            let overdue = |next: Option<u64>| next.is_some_and(|at| at <= now);
            let turn_polls = inner.turn_polls.idle_wants().count();
            let work_polls = inner.work_polls.idle_wants().count();
            assert!(turn_polls == 0 || !overdue(state.messages.next_change()), "step {step}");
            assert!(work_polls == 0 || !overdue(work.next_change()), "step {step}");
        });
    }
}

#[tokio::test(start_paused = true)]
async fn r8_32_r8_33_nobody_waits_for_what_is_there() {
    for seed in 0..100 {
        let mut crowd = Crowd::new(seed);
        for step in 0..100 {
            // Several things happen before anybody who is called gets to run.
            for _ in 0..=crowd.pick(3) {
                match crowd.pick(11) {
                    0 | 1 => crowd.poll_work(),
                    2 | 3 => crowd.poll_turns(),
                    4 => crowd.drop_a_poll(),
                    5 | 6 => crowd.queue_work().await,
                    7 => crowd.touch_work().await,
                    8 | 9 => crowd.send().await,
                    _ => crowd.touch_turn().await,
                }
            }
            if crowd.pick(4) == 0 {
                pass([1, 20, LOCK_MS][crowd.pick(3)]).await;
            }
            crowd.come_to_rest().await;
            crowd.assert_nobody_starves(step);
        }
        crowd.polls.iter().for_each(JoinHandle::abort);
    }
}
