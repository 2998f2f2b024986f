//! Random operations on the worker queue, next to a model that looks at every row each time.

use std::collections::HashMap;
use std::time::Duration;

use duroxide_core::model::WorkItem;

use super::lab::*;
use crate::providers::{Provider, TagFilter};
use crate::random::Random;

/// An activity as the rules speak of it.
struct Row {
    id: u64,
    tag: Option<&'static str>,
    session: Option<&'static str>,
    visible_at: u64,
    locked_until: u64,
    token: Option<String>,
    attempts: u32,
}

/// A session as the rules speak of it.
struct Lease {
    owner: &'static str,
    until: u64,
    used: u64,
}

/// The rules R8.70 – R8.88 and R8.146, read aloud.
#[derive(Default)]
struct Model {
    rows: Vec<Row>,
    leases: HashMap<&'static str, Lease>,
}

impl Model {
    fn session_allows(&self, row: &Row, owner: Option<&str>, now: u64) -> bool {
        match (row.session, owner) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(session), Some(owner)) => self
                .leases
                .get(session)
                .is_none_or(|lease| lease.until <= now || lease.owner == owner),
        }
    }

    /// Rows whose lock ran out go behind the others.
    fn move_behind(&mut self, now: u64) {
        let ran_out = |row: &mut Row| 0 < row.locked_until && row.locked_until <= now;
        let mut ran_out: Vec<Row> = self.rows.extract_if(.., ran_out).collect();
        ran_out.sort_by_key(|row| row.locked_until); // otherwise as they stood
        ran_out.iter_mut().for_each(|row| row.locked_until = 0);
        self.rows.extend(ran_out);
    }

    /// Position of the row a fetch should give.
    fn fetch(&mut self, tags: &TagFilter, owner: Option<&str>, now: u64) -> Option<usize> {
        self.move_behind(now);
        self.rows.iter().position(|row| {
            row.visible_at <= now
                && row.locked_until <= now
                && tags.matches(row.tag)
                && self.session_allows(row, owner, now)
        })
    }

    fn current(&self, token: &str) -> Option<usize> {
        self.rows.iter().position(|row| row.token.as_deref() == Some(token))
    }

    fn held(&self, token: &str, now: u64) -> Option<usize> {
        self.current(token).filter(|position| now < self.rows[*position].locked_until)
    }

    fn touch(&mut self, position: usize, now: u64) {
        let lease = self.rows[position].session.and_then(|session| self.leases.get_mut(session));
        if let Some(lease) = lease.filter(|lease| now < lease.until) {
            lease.used = now;
        }
    }
}

/// Lab and model, side by side.
struct Pair {
    lab: Lab,
    model: Model,
    random: Random,
    next_id: u64,
    tokens: Vec<String>,
}

impl Pair {
    fn pick(&self, below: usize) -> usize {
        (self.random.next_u64() % below as u64) as usize
    }

    fn some_token(&self) -> Option<String> {
        (!self.tokens.is_empty()).then(|| self.tokens[self.pick(self.tokens.len())].clone())
    }

    async fn queue(&mut self) {
        let tag = [None, None, Some("x"), Some("y")][self.pick(4)];
        let session = [None, None, Some("s"), Some("t")][self.pick(4)];
        self.next_id += 1;
        let id = self.next_id;
        let mut item = activity("a", id);
        if let WorkItem::ActivityExecute { tag: t, session_id, .. } = &mut item {
            (*t, *session_id) = (tag.map(Into::into), session.map(Into::into));
        }
        self.lab.queue(item).await;
        let (visible_at, locked_until) = (0, 0);
        let row = Row { id, tag, session, visible_at, locked_until, token: None, attempts: 0 };
        self.model.rows.push(row);
    }

    async fn fetch(&mut self) {
        let tags = [
            TagFilter::DefaultOnly,
            TagFilter::Any,
            TagFilter::tags(["x"]),
            TagFilter::tags(["x", "y"]),
            TagFilter::default_and(["y"]),
        ];
        let tags = &tags[self.pick(tags.len())];
        let owner = [None, Some("w1"), Some("w2")][self.pick(3)];
        let config = owner.map(lease);
        let job = self.lab.try_job(config.as_ref(), tags).await;
        let now = self.lab.now();
        let expected = self.model.fetch(tags, owner, now);
        let expected_id = expected.map(|position| self.model.rows[position].id);
        assert_eq!(job.as_ref().map(Job::id), expected_id, "{tags:?} for {owner:?}");
        if let (Some(job), Some(position)) = (job, expected) {
            let row = &mut self.model.rows[position];
            row.attempts += 1;
            assert_eq!(job.attempt, row.attempts);
            (row.locked_until, row.token) = (now + LOCK_MS, Some(job.token.clone()));
            if let (Some(session), Some(owner)) = (row.session, owner) {
                let lease = Lease { owner, until: now + LOCK_MS, used: now };
                self.model.leases.insert(session, lease);
            }
            self.tokens.push(job.token);
        }
    }

    async fn ack(&mut self) {
        let Some(token) = self.some_token() else { return };
        let acked = self.lab.ack_work_item(&token, None).await.is_ok();
        let now = self.lab.now();
        let held = self.model.held(&token, now);
        assert_eq!(acked, held.is_some());
        if let Some(position) = held {
            self.model.touch(position, now);
            self.model.rows.remove(position);
        }
    }

    async fn abandon(&mut self) {
        let Some(token) = self.some_token() else { return };
        let (delay, uncount) = ([None, Some(40)][self.pick(2)], self.pick(2) == 0);
        let given_back =
            self.lab.abandon_work_item(&token, delay.map(Duration::from_millis), uncount);
        let given_back = given_back.await.is_ok();
        let current = self.model.current(&token);
        assert_eq!(given_back, current.is_some());
        if let Some(position) = current {
            let row = &mut self.model.rows[position];
            row.attempts = row.attempts.saturating_sub(u32::from(uncount));
            (row.locked_until, row.token) = (0, None);
            row.visible_at = self.lab.now() + delay.unwrap_or(0);
        }
    }

    async fn renew(&mut self) {
        let Some(token) = self.some_token() else { return };
        let renewed = self.lab.renew_work_item_lock(&token, LOCK).await.is_ok();
        let now = self.lab.now();
        let held = self.model.held(&token, now);
        assert_eq!(renewed, held.is_some());
        if let Some(position) = held {
            self.model.rows[position].locked_until = now + LOCK_MS;
            self.model.touch(position, now);
        }
    }

    async fn renew_leases(&mut self) {
        let owners: &[&str] = [&["w1"][..], &["w1", "w2"], &[]][self.pick(3)];
        let idle = Duration::from_millis(50);
        let renewed = self.lab.renew_session_lock(owners, LOCK, idle).await.unwrap();
        let now = self.lab.now();
        let mut expected = 0;
        for lease in self.model.leases.values_mut() {
            if owners.contains(&lease.owner) && now < lease.until && now - 50 < lease.used {
                lease.until = now + LOCK_MS;
                expected += 1;
            }
        }
        assert_eq!(renewed, expected);
    }

    async fn clean_up(&mut self) {
        let removed = self.lab.cleanup_orphaned_sessions(LOCK).await.unwrap();
        let (rows, now) = (&self.model.rows, self.lab.now());
        let before = self.model.leases.len();
        self.model.leases.retain(|session, lease| {
            now < lease.until || rows.iter().any(|row| row.session == Some(session))
        });
        assert_eq!(removed, before - self.model.leases.len());
    }
}

#[tokio::test(start_paused = true)]
async fn r8_70_to_r8_88_the_indexes_say_what_a_look_at_every_row_says() {
    for seed in 0..200 {
        let mut pair = Pair {
            lab: lab(),
            model: Model::default(),
            random: Random::seeded(seed),
            next_id: 0,
            tokens: Vec::new(),
        };
        for _ in 0..150 {
            match pair.pick(16) {
                0..=3 => pair.queue().await,
                4..=8 => pair.fetch().await,
                9 | 10 => pair.ack().await,
                11 => pair.abandon().await,
                12 => pair.renew().await,
                13 => pair.renew_leases().await,
                14 => pair.clean_up().await,
                _ => pass([1, 10, 45, LOCK_MS - 20, LOCK_MS][pair.pick(5)]).await,
            }
        }
    }
}
