//! Choices, the same for the same seed; and the small pools that names are drawn from, so that they
//! meet again.

use std::time::Duration;

use crate::random::Random;

/// Instances. The last one is never started; a parent stands before its children.
pub(super) const INSTANCES: &[&str] =
    &["a", "b", "A", "it's", "nul\0and\nline", "🦀 %_", "a::sub::2", "nobody"];
/// Keys of values.
pub(super) const KEYS: &[&str] = &["k", "K", "it's", "", "nul\0"];
/// Texts of all other kinds: names, inputs, outputs, values, statuses.
pub(super) const TEXTS: &[&str] =
    &["x", "y", "", "it's \"quoted\"", "nul\0inside", "two\nlines", "crab 🦀", "null", "{\"a\":1}"];
/// Versions of handlers.
pub(super) const VERSIONS: &[&str] = &["1.0.0", "2.0.0-beta", "unknown", ""];
/// Tags of activities.
pub(super) const TAGS: &[&str] = &["gpu", "cpu", "it's", ""];
/// Sessions of activities.
pub(super) const SESSIONS: &[&str] = &["s1", "s2", "it's\n🦀"];
/// Owners of sessions.
pub(super) const OWNERS: &[&str] = &["w1", "w2", "it's w3"];
/// Library versions that executions are pinned to.
pub(super) const PINS: &[&str] = &[
    "0.1.0",
    "0.2.0",
    "0.2.0-alpha.1",
    "0.2.0-alpha.10",
    "0.2.0-alpha.9",
    "0.2.0+build.7",
    "1.0.0",
    "18446744073709551615.0.0",
];
/// Times in milliseconds, none longer than a step of the clock may be.
const TIMES_MS: &[u64] = &[1, 2, 10, 100, 100, 1000, 1000, 30_000];

/// A seeded source of choices.
#[derive(Debug)]
pub(super) struct Dice(Random);

impl Dice {
    /// The choices of this seed.
    pub(super) fn new(seed: u64) -> Self {
        Self(Random::seeded(seed))
    }

    /// The next 64 bits.
    pub(super) fn roll(&self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `limit`; 0 if there is none.
    pub(super) fn below(&self, limit: u64) -> u64 {
        self.roll().checked_rem(limit).unwrap_or(0)
    }

    /// True so many times in a hundred.
    pub(super) fn chance(&self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several; the first ones come up more often.
    pub(super) fn favour<'t, T>(&self, all: &'t [T]) -> Option<&'t T> {
        let limit = 1 + self.below(all.len() as u64);
        all.get(self.below(limit) as usize)
    }

    /// One of several.
    pub(super) fn pick<'t, T>(&self, all: &'t [T]) -> Option<&'t T> {
        all.get(self.below(all.len() as u64) as usize)
    }

    /// One of the names.
    pub(super) fn name(&self, pool: &[&'static str]) -> String {
        self.pick(pool).copied().unwrap_or_default().to_owned()
    }

    /// Some of the names, each at most once.
    pub(super) fn names(&self, pool: &[&'static str]) -> Vec<String> {
        let chosen = pool.iter().filter(|_| self.chance(35));
        chosen.map(|name| (*name).to_owned()).collect()
    }

    /// A name, so many times in a hundred.
    pub(super) fn maybe_name(&self, percent: u64, pool: &[&'static str]) -> Option<String> {
        self.chance(percent).then(|| self.name(pool))
    }

    /// An instance: few, so that much happens to them.
    pub(super) fn instance(&self) -> String {
        self.favour(INSTANCES).copied().unwrap_or_default().to_owned()
    }

    /// Any text.
    pub(super) fn text(&self) -> String {
        self.name(TEXTS)
    }

    /// An input, result or output: any text, or one of a few that are long enough to be stored in
    /// another way.
    pub(super) fn payload(&self) -> String {
        let roll = self.roll();
        let (text, is_long) = (roll % TEXTS.len() as u64, roll >> 32);
        match is_long % 30 {
            0 => "a".repeat(1024),
            1 => "nul\0 🦀\n".repeat(600),
            _ => TEXTS.get(text as usize).copied().unwrap_or_default().to_owned(),
        }
    }

    /// Some milliseconds.
    pub(super) fn ms(&self) -> u64 {
        self.pick(TIMES_MS).copied().unwrap_or(1)
    }

    /// How long a lock or a lease lasts.
    pub(super) fn lock(&self) -> Duration {
        match self.below(40) {
            0 => Duration::ZERO,
            1 => Duration::MAX,
            2..27 => Duration::from_secs(30),
            _ => Duration::from_millis(self.ms()),
        }
    }

    /// How long something is hidden, if at all.
    pub(super) fn delay(&self) -> Option<Duration> {
        match self.below(60) {
            0 => Some(Duration::MAX),
            1..4 => Some(Duration::ZERO),
            4..15 => Some(Duration::from_millis(self.ms())),
            _ => None,
        }
    }

    /// How long something that is given back is hidden, if at all.
    pub(super) fn pause(&self) -> Option<Duration> {
        if self.chance(50) { Some(Duration::from_millis(self.ms())) } else { self.delay() }
    }

    /// A value: any text, seldom a long one.
    pub(super) fn value(&self) -> String {
        if self.chance(1) { "long ".repeat(14_000) } else { self.text() }
    }

    /// A time around now.
    pub(super) fn time(&self, now: u64) -> u64 {
        match self.below(12) {
            0 => 0,
            1 => u64::MAX,
            2..4 => now,
            4..8 => now - self.ms(),
            _ => now + self.ms(),
        }
    }
}
