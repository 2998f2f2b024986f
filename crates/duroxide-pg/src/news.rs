//! What nodes tell each other: that there is something to fetch, and which commits clients may wait for.
//!
//! A notification is a hint. Whoever misses it finds out by the next pulse.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::commit_board::Place;

/// Most bells in one notification, which may have 8000 bytes.
const BELLS_MAX: usize = 1000;

/// News that others are to hear, as they gather.
#[derive(Default)]
pub(crate) struct Outbox {
    waiting: Mutex<News>,
    notify: Notify,
}

impl Outbox {
    /// Adds news.
    pub(crate) fn add(&self, news: impl FnOnce(&mut News)) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let was_empty = waiting.is_empty();
        news(&mut waiting);
        let is_first = was_empty && !waiting.is_empty();
        drop(waiting);
        if is_first {
            self.notify.notify_one();
        }
    }

    /// Waits for news.
    pub(crate) async fn wait(&self) {
        self.notify.notified().await;
    }

    /// All that has gathered.
    pub(crate) fn take(&self) -> News {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What others are to hear.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// There are turns that the teller did not take.
    pub(crate) turns: bool,
    /// There are activities that the teller did not take.
    pub(crate) work: bool,
    /// The teller came or went.
    pub(crate) company: bool,
    /// Bells of the commit board.
    pub(crate) bells: BTreeSet<Place>,
    /// All of them, or more than can be named.
    pub(crate) all_bells: bool,
}

impl News {
    /// There may be something for everybody.
    pub(crate) fn add_everything(&mut self) {
        (self.turns, self.work, self.all_bells) = (true, true, true);
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The text of a notification: who tells, what, which bells.
    pub(crate) fn to_text(&self, node: i64) -> String {
        let mut text = format!("{node} ");
        for (is_so, letter) in [(self.turns, 't'), (self.work, 'w'), (self.company, 'c')] {
            if is_so {
                text.push(letter);
            }
        }
        if self.all_bells || BELLS_MAX < self.bells.len() {
            return text + " *";
        }
        for bell in &self.bells {
            text.push_str(&format!(" {bell:x}"));
        }
        text
    }
}

/// A notification of another node.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) node: i64,
    pub(crate) news: News,
}

impl Heard {
    /// Reads the text of a notification. What makes no sense is left out: others may say more one day.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let node = words.next()?.parse().ok()?;
        let letters = words.next().unwrap_or_default();
        let says = |letter| letters.contains(letter);
        let (turns, work, company) = (says('t'), says('w'), says('c'));
        let mut news = News { turns, work, company, ..News::default() };
        for word in words {
            news.all_bells |= word == "*";
            news.bells.extend(Place::from_str_radix(word, 16));
        }
        Some(Self { node, news })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_are_heard_as_they_were_told() {
        let bells = BTreeSet::from([0, 31, 4095]);
        let news = News { turns: true, company: true, bells, ..News::default() };
        assert_eq!(news.to_text(7), "7 tc 0 1f fff");
        assert_eq!(Heard::read("7 tc 0 1f fff"), Some(Heard { node: 7, news }));
        let many = News { bells: (0..1001).collect(), ..News::default() };
        assert_eq!(many.to_text(7), "7  *");
        assert!(Heard::read("7  *").is_some_and(|heard| heard.news.all_bells));
        let mut everything = News::default();
        everything.add_everything();
        assert_eq!(everything.to_text(7), "7 tw *");
        assert!(many.to_text(i64::MAX).len() < 8000);
        let most = News { bells: (3096..=4095).collect(), ..News::default() };
        assert!(most.to_text(i64::MAX).len() < 8000);
        assert_eq!(Heard::read("who?"), None);
        let odd = Heard::read("7 xyz zz 5").unwrap();
        assert_eq!(odd.news, News { bells: BTreeSet::from([5]), ..News::default() });
    }

    #[tokio::test]
    async fn news_gather_until_they_are_taken() {
        let outbox = Outbox::default();
        outbox.add(|news| news.turns = true);
        outbox.add(|news| news.work = true);
        outbox.wait().await;
        assert_eq!(outbox.take(), News { turns: true, work: true, ..News::default() });
        outbox.add(|_| {});
        assert!(outbox.take().is_empty());
    }
}
