//! Random operations on the orchestrator queue, next to a model that looks at every row each time.

use std::collections::HashMap;
use std::time::Duration;

use duroxide_core::model::WorkItem;

use super::lab::*;
use crate::providers::{FetchedTurn, Provider, ProviderAdmin};
use crate::random::Random;

/// A message as the rules speak of it.
struct Row {
    number: u64,
    instance: String,
    item: WorkItem,
    visible_at: u64,
    attempts: u32,
    tag: Option<String>,
}

/// The rules R8.20 – R8.29, R8.42, R8.54, R8.65 – R8.68, R8.90, R8.146, read aloud.
#[derive(Default)]
struct Model {
    rows: Vec<Row>,
    locks: HashMap<String, (String, u64)>,
    /// Locks that ran out, as fetches have seen.
    seen: Vec<String>,
    /// Positions of instances that were moved behind others.
    moved: HashMap<String, u64>,
    last_number: u64,
    pins: HashMap<String, &'static str>,
}

impl Model {
    fn is_locked(&self, instance: &str, now: u64) -> bool {
        self.locks.get(instance).is_some_and(|(_, until)| now < *until)
    }

    fn visible(&self, instance: &str, now: u64) -> Vec<&Row> {
        let ours = self.rows.iter().filter(|row| row.instance == instance);
        ours.filter(|row| row.visible_at <= now).collect()
    }

    fn fresh_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Where an instance stands among the others.
    fn position(&self, instance: &str, now: u64) -> Option<u64> {
        let oldest = self.visible(instance, now).first()?.number;
        Some(oldest.max(self.moved.get(instance).copied().unwrap_or(0)))
    }

    /// Whose lock ran out goes behind the others; who has no messages stands nowhere.
    fn move_behind(&mut self, now: u64) {
        let ran_out = self
            .locks
            .iter()
            .filter(|(_, (token, until))| *until <= now && !self.seen.contains(token));
        let ran_out = ran_out.filter_map(|(instance, (token, until))| {
            Some((*until, self.position(instance, now)?, instance.clone(), token.clone()))
        });
        let mut ran_out: Vec<_> = ran_out.collect();
        ran_out.sort();
        for (_, _, instance, token) in ran_out {
            let position = self.fresh_number();
            self.moved.insert(instance, position);
            self.seen.push(token);
        }
    }

    fn forget_positions(&mut self, now: u64) {
        let moved: Vec<String> = self.moved.keys().cloned().collect();
        for instance in moved {
            let is_empty = self.rows.iter().all(|row| row.instance != instance);
            if is_empty && !self.is_locked(&instance, now) {
                self.moved.remove(&instance);
            }
        }
    }

    fn can_run(&self, instance: &str, range: Option<&str>, now: u64) -> bool {
        let starts = self.visible(instance, now).iter().any(|row| row.item.is_start());
        let pin = self.pins.get(instance);
        !self.is_locked(instance, now)
            && (pin.is_some() || starts)
            && (range.is_none() || pin.is_none() || range == pin.copied())
    }

    fn is_orphaned(&self, instance: &str, now: u64) -> bool {
        let mut ours = self.rows.iter().filter(|row| row.instance == instance);
        let visible = self.visible(instance, now);
        let queued = |row: &&Row| matches!(row.item, WorkItem::QueueMessage { .. });
        !self.pins.contains_key(instance)
            && !self.is_locked(instance, now)
            && visible.iter().all(queued)
            && !ours.any(|row| row.item.is_start())
    }

    /// What a fetch should give: instance, messages, attempt count.
    fn fetch(&mut self, range: Option<&str>, now: u64) -> Option<(String, Vec<WorkItem>, u32)> {
        let orphaned: Vec<String> = self.rows.iter().map(|row| row.instance.clone()).collect();
        for instance in
            orphaned.into_iter().filter(|i| self.is_orphaned(i, now)).collect::<Vec<_>>()
        {
            self.rows.retain(|row| row.instance != instance || now < row.visible_at);
        }
        self.forget_positions(now);
        self.move_behind(now);
        let visible = self.rows.iter().filter(|row| row.visible_at <= now);
        let instance = visible
            .filter(|row| self.can_run(&row.instance, range, now))
            .min_by_key(|row| self.position(&row.instance, now))?
            .instance
            .clone();
        let mut batch = Vec::new();
        let mut attempts = 0;
        for row in self.rows.iter_mut().filter(|row| row.instance == instance) {
            row.tag = None;
            if row.visible_at <= now {
                row.attempts += 1;
                attempts = attempts.max(row.attempts);
                batch.push(row.item.clone());
            }
        }
        Some((instance, batch, attempts))
    }

    fn locked(&mut self, turn: &FetchedTurn, now: u64) {
        let instance = turn.item.instance.clone();
        let ours = self.rows.iter_mut().filter(|row| row.instance == instance);
        for row in ours.filter(|row| row.visible_at <= now) {
            row.tag = Some(turn.lock_token.clone());
        }
        self.locks.insert(instance, (turn.lock_token.clone(), now + LOCK_MS));
    }

    fn is_current(&self, turn: &FetchedTurn) -> bool {
        self.locks.get(&turn.item.instance).is_some_and(|(token, _)| *token == turn.lock_token)
    }

    fn holds(&self, turn: &FetchedTurn, now: u64) -> bool {
        self.is_current(turn) && self.is_locked(&turn.item.instance, now)
    }
}

/// Lab and model, side by side.
struct Pair {
    lab: Lab,
    model: Model,
    random: Random,
    turns: Vec<FetchedTurn>,
}

impl Pair {
    fn pick(&self, below: usize) -> usize {
        (self.random.next_u64() % below as u64) as usize
    }

    fn some_turn(&self) -> Option<FetchedTurn> {
        (!self.turns.is_empty()).then(|| self.turns[self.pick(self.turns.len())].clone())
    }

    async fn send(&mut self) {
        let instance = format!("i{}", self.pick(4));
        let item = match self.pick(4) {
            0 => start(&instance),
            1 => queue_message(&instance, "m"),
            _ => raise(&instance, "x"),
        };
        let delay = [0, 0, 0, 30][self.pick(4)];
        self.lab.send_later(item.clone(), delay).await;
        let visible_at = self.lab.now() + delay;
        let number = self.model.fresh_number();
        self.model.rows.push(Row { number, instance, item, visible_at, attempts: 0, tag: None });
    }

    async fn fetch(&mut self) {
        let range = [None, Some("1.0.0"), Some("2.0.0")][self.pick(3)];
        let filter = range.map(|version| versions(version, version));
        let now = self.lab.now();
        let turn = self.lab.try_turn(filter.as_ref()).await;
        let expected = self.model.fetch(range, now);
        let got = turn.as_ref().map(|turn| {
            (turn.item.instance.clone(), turn.item.messages.clone(), turn.attempt_count)
        });
        assert_eq!(got, expected);
        if let Some(turn) = turn {
            self.model.locked(&turn, now);
            self.turns.push(turn);
        }
    }

    async fn commit(&mut self) {
        let Some(turn) = self.some_turn() else { return };
        let pin = ["1.0.0", "2.0.0"][self.pick(2)];
        let commit = commit().named("Orch", "1.0.0").pinned(pin);
        let committed = self.lab.commit(&turn, commit).await.is_ok();
        assert_eq!(committed, self.model.holds(&turn, self.lab.now()));
        if committed {
            let instance = &turn.item.instance;
            self.model.pins.insert(instance.clone(), pin);
            self.model.locks.remove(instance);
            self.model.moved.remove(instance);
            self.model.rows.retain(|row| row.tag.as_ref() != Some(&turn.lock_token));
        }
    }

    async fn abandon(&mut self) {
        let Some(turn) = self.some_turn() else { return };
        let (delay, uncount) = ([None, Some(40)][self.pick(2)], self.pick(2) == 0);
        let given_back = self.lab.abandon_orchestration_item(
            &turn.lock_token,
            delay.map(Duration::from_millis),
            uncount,
        );
        assert_eq!(given_back.await.is_ok(), self.model.is_current(&turn));
        if self.model.is_current(&turn) {
            self.model.locks.remove(&turn.item.instance);
            let tagged = |row: &&mut Row| row.tag.as_ref() == Some(&turn.lock_token);
            for row in self.model.rows.iter_mut().filter(tagged) {
                row.tag = None;
                row.attempts = row.attempts.saturating_sub(u32::from(uncount));
                row.visible_at = delay.map_or(row.visible_at, |delay| self.lab.now() + delay);
            }
        }
    }

    async fn renew(&mut self) {
        let Some(turn) = self.some_turn() else { return };
        let renewed = self.lab.renew_orchestration_item_lock(&turn.lock_token, LOCK).await.is_ok();
        let now = self.lab.now();
        assert_eq!(renewed, self.model.holds(&turn, now));
        if renewed {
            let lock = (turn.lock_token.clone(), now + LOCK_MS);
            self.model.locks.insert(turn.item.instance, lock);
        }
    }

    async fn delete(&mut self) {
        let instance = format!("i{}", self.pick(4));
        let deleted = self.lab.delete_instance(&instance, true).await.is_ok();
        assert_eq!(deleted, self.model.pins.remove(&instance).is_some());
        if deleted {
            self.model.rows.retain(|row| row.instance != instance);
            self.model.locks.remove(&instance);
            self.model.moved.remove(&instance);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn r8_20_to_r8_29_the_indexes_say_what_a_look_at_every_row_says() {
    for seed in 0..200 {
        let mut pair = Pair {
            lab: lab(),
            model: Model::default(),
            random: Random::seeded(seed),
            turns: Vec::new(),
        };
        for _ in 0..150 {
            match pair.pick(16) {
                0..=4 => pair.send().await,
                5..=9 => pair.fetch().await,
                10 | 11 => pair.commit().await,
                12 => pair.abandon().await,
                13 => pair.renew().await,
                14 => pass([1, 10, 35, LOCK_MS - 20, LOCK_MS][pair.pick(5)]).await,
                _ if pair.pick(5) == 0 => pair.delete().await,
                _ => {}
            }
        }
    }
}
