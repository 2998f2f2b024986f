//! The wrapper: a memory store that is wrong in one way, and what it has to remember for that.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use duroxide::clock::Clock;
use duroxide::providers::memory::{MemoryOptions, MemoryProvider};
use duroxide::providers::{OrchestrationItem, Provider, WorkItem};

use super::list::Mutant;

/// A lock that outlasts every check.
pub const LONG: Duration = Duration::from_secs(3600);

/// A memory store that is wrong in one way; without a mutant, in none.
pub struct MutantProvider {
    pub inner: Arc<MemoryProvider>,
    pub mutant: Option<Mutant>,
    notes: Mutex<Notes>,
}

/// What some mutants have to remember.
#[derive(Default)]
pub struct Notes {
    /// Turns by lock token.
    pub turns: HashMap<String, HeldTurn>,
    /// The latest of them.
    pub latest_turn: Option<(OrchestrationItem, String, u32)>,
    /// When the lock of an activity runs out, by token.
    pub jobs: HashMap<String, u64>,
    /// Tokens of what was committed, answered or given back.
    pub answered: HashSet<String>,
    /// Real tokens by those that were handed out instead.
    pub aliases: HashMap<String, String>,
    /// Instances that stay locked until then.
    pub blocked: HashMap<String, u64>,
    /// When each session owner last fetched.
    pub fetched_at: HashMap<String, u64>,
    /// Instances that messages were sent to.
    pub addressed: Vec<String>,
    /// Queue messages for instances that do not exist.
    pub orphans: Vec<WorkItem>,
    /// Executions that are not to be seen any more.
    pub pruned: HashMap<String, u64>,
    /// Every value ever set, by instance and key.
    pub values: HashMap<(String, String), String>,
    /// The activities behind the tokens.
    pub items: HashMap<String, WorkItem>,
    /// The first custom status of each instance's latest commit that had one.
    pub first_status: HashMap<String, Option<String>>,
    /// The custom status of deleted instances.
    pub left_status: HashMap<String, (Option<String>, u64)>,
    /// Instances that lost their values.
    pub valueless: HashSet<String>,
    pub sessions_forgotten: bool,
}

/// A turn that was handed out.
#[derive(Clone)]
pub struct HeldTurn {
    pub instance: String,
    pub messages: Vec<WorkItem>,
    pub until: u64,
}

impl MutantProvider {
    pub fn new(mutant: Option<Mutant>) -> Self {
        Self { inner: Arc::new(MemoryProvider::new()), mutant, notes: Mutex::default() }
    }

    /// A store that goes by this clock.
    pub fn with_clock(mutant: Option<Mutant>, clock: Arc<dyn Clock>) -> Self {
        let options = MemoryOptions { clock, ..MemoryOptions::default() };
        let inner = Arc::new(MemoryProvider::with_options(options));
        Self { inner, mutant, notes: Mutex::default() }
    }

    /// Milliseconds since the epoch.
    pub fn now(&self) -> u64 {
        self.inner.store_time_ms().unwrap_or_default()
    }

    /// When a time that begins now is over.
    pub fn after(&self, time: Duration) -> u64 {
        self.now().saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    }

    /// How long it is until then.
    pub fn until(&self, then: u64) -> Duration {
        Duration::from_millis(then.saturating_sub(self.now()))
    }

    /// Whether it is this mutant.
    pub fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    pub fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap()
    }

    /// The real token behind one that was handed out.
    pub fn real_token(&self, token: &str) -> String {
        self.notes().aliases.get(token).map_or_else(|| token.to_owned(), String::clone)
    }

    pub fn held(&self, token: &str) -> Option<HeldTurn> {
        self.notes().turns.get(token).cloned()
    }

    /// Takes out of these what was locked until now at the latest.
    pub fn lost<T>(
        &self,
        of: impl FnOnce(&mut Notes) -> &mut HashMap<String, T>,
        until: impl Fn(&T) -> u64,
    ) -> Vec<(String, T)> {
        let now = self.now();
        of(&mut self.notes()).extract_if(|_, held| until(held) <= now).collect()
    }

    /// Notes that a lock did not end by itself.
    pub fn note_answered(&self, token: &str) {
        self.notes().answered.insert(token.to_owned());
    }

    /// Whether a lock on this instance ended without its holder since the last commit.
    pub fn has_lost_turn(&self, instance: &str) -> bool {
        let (notes, now) = (self.notes(), self.now());
        notes.turns.iter().any(|(token, held)| {
            held.instance == instance && held.until <= now && !notes.answered.contains(token)
        })
    }

    /// Whether a lock on this activity ended without its holder.
    pub fn has_lost_work(&self, item: &WorkItem) -> bool {
        let (notes, now) = (self.notes(), self.now());
        notes.jobs.iter().any(|(token, until)| {
            notes.items.get(token) == Some(item) && *until <= now && !notes.answered.contains(token)
        })
    }

    /// Fetches the turn of this instance, with all its messages; its token.
    pub async fn retake(&self, instance: &str) -> Option<String> {
        let (mut found, mut others) = (None, Vec::new());
        while let Ok(Some((item, token, _))) =
            self.inner.fetch_orchestration_item(LONG, Duration::ZERO, None).await
        {
            if item.instance == instance {
                found = Some(token);
                break;
            }
            others.push(token);
        }
        for token in others {
            self.inner.abandon_orchestration_item(&token, None, true).await.unwrap();
        }
        found
    }
}
