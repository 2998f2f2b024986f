//! Random programs: what they do, and what comes out.

use std::collections::HashMap;

use duroxide::random::Random;
use serde::{Deserialize, Serialize};

/// One step of a program. Each yields a number that is known in advance.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Step {
    /// An activity that takes some milliseconds.
    Work { value: u64, ms: u64 },
    /// The same on a session.
    OnSession { value: u64, session: u64 },
    /// The same for workers that have a tag.
    Tagged { value: u64, tag: u64 },
    /// Several at once.
    FanOut { value: u64, width: u64 },
    /// One that fails so often before it succeeds.
    Retry { value: u64, failures: u64 },
    /// An activity that is faster than a timer.
    Race { value: u64 },
    /// A timer that is faster than an activity, which is then dropped.
    Impatience { ms: u64 },
    /// A wait.
    Timer { ms: u64 },
    /// An event of the name of this step; its data is the value.
    Event { value: u64 },
    /// So many messages from a queue, in order.
    Queue { messages: u64 },
    /// A program of its own.
    Child(Vec<Step>),
    /// The rest in a new execution.
    ContinueAsNew,
    /// A value stored.
    Put { key: u64, value: u64 },
    /// A value read.
    Get { key: u64 },
    /// Waits for ever: a client has to cancel.
    Never,
}

/// A program on its way: input of each execution.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Program {
    /// All of it.
    pub steps: Vec<Step>,
    /// The next step.
    pub at: usize,
    /// What came out so far.
    pub sum: u64,
    /// Messages read so far.
    pub read: u64,
}

impl Program {
    /// A program that has not begun.
    pub fn new(steps: Vec<Step>) -> Self {
        Self { steps, at: 0, sum: 0, read: 0 }
    }

    /// One of all possible programs.
    pub fn random(random: &Random) -> Self {
        let length = 1 + below(random, 6);
        let mut steps: Vec<Step> = (0..length).map(|_| random_step(random, 0)).collect();
        if below(random, 12) == 0 {
            steps.push(Step::Never);
        }
        Self::new(steps)
    }

    /// What comes out; `None` if it has to be cancelled.
    pub fn expected(&self) -> Option<u64> {
        let mut values = HashMap::new();
        let mut sum = 0;
        for step in &self.steps {
            sum = mix(
                sum,
                match step {
                    Step::Work { value, .. }
                    | Step::OnSession { value, .. }
                    | Step::Tagged { value, .. }
                    | Step::Retry { value, .. }
                    | Step::Race { value }
                    | Step::Event { value } => *value,
                    Step::FanOut { value, width } => {
                        (0..*width).fold(0, |sum, n| mix(sum, value + n))
                    }
                    Step::Queue { messages } => (0..*messages).fold(0, mix),
                    Step::Child(steps) => Self::new(steps.clone()).expected()?,
                    Step::Put { key, value } => {
                        values.insert(key, *value);
                        0
                    }
                    Step::Get { key } => values.get(key).copied().unwrap_or(0),
                    Step::Impatience { .. } | Step::Timer { .. } => 0,
                    Step::ContinueAsNew => continue,
                    Step::Never => return None,
                },
            );
        }
        Some(sum)
    }

    /// Whether a client has to cancel it.
    pub fn is_endless(&self) -> bool {
        self.expected().is_none()
    }

    /// How many messages it reads from its queue.
    pub fn messages(&self) -> u64 {
        let messages = self.steps.iter().map(|step| match step {
            Step::Queue { messages } => *messages,
            _ => 0,
        });
        messages.sum()
    }
}

/// Adds a number to a sum so that order matters.
pub fn mix(sum: u64, value: u64) -> u64 {
    (sum * 31 + value + 1) % 1_000_000_007
}

/// A random number below a limit.
pub fn below(random: &Random, limit: u64) -> u64 {
    random.next_u64() % limit
}

/// Children get no messages: no client knows their ids.
fn random_step(random: &Random, depth: u32) -> Step {
    let value = below(random, 1000);
    match below(random, if depth == 0 { 26 } else { 22 }) {
        0..=2 => Step::Work { value, ms: below(random, 40) },
        3 => Step::Tagged { value, tag: below(random, 2) },
        4..=6 => Step::FanOut { value, width: 2 + below(random, 8) },
        7..=8 => Step::OnSession { value, session: below(random, 6) },
        9..=10 => Step::Retry { value, failures: 1 + below(random, 2) },
        11 => Step::Race { value },
        12 => Step::Impatience { ms: 5 + below(random, 40) },
        13..=14 => Step::Timer { ms: below(random, 200) },
        15..=16 => Step::Put { key: below(random, 3), value },
        17 => Step::Get { key: below(random, 3) },
        18..=19 => Step::ContinueAsNew,
        20..=21 if depth < 2 => {
            let length = 1 + below(random, 3);
            Step::Child((0..length).map(|_| random_step(random, depth + 1)).collect())
        }
        22..=23 => Step::Event { value },
        _ => Step::Queue { messages: if depth == 0 { 1 + below(random, 4) } else { 0 } },
    }
}
