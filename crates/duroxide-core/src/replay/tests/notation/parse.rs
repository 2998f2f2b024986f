//! From text to events and messages.

use super::{INSTANCE, NOW_MS};
use crate::model::{AppErrorKind, ErrorDetails, EventKind, PoisonMessageType, WorkItem};

/// The words of a line that are still to be read, in order.
pub(crate) struct Words(std::collections::VecDeque<String>);

impl Words {
    /// Splits at spaces outside of quotes; quotes are removed and escapes resolved as in JSON.
    pub(crate) fn of(line: &str) -> Self {
        let mut words = Vec::new();
        let mut word: Option<String> = None;
        let mut rest = line;
        while let Some(next) = rest.chars().next() {
            if next == '"' {
                let mut texts = serde_json::Deserializer::from_str(rest).into_iter::<String>();
                let text = texts.next().and_then(Result::ok);
                let text = text.unwrap_or_else(|| panic!("unclosed quote in: {line}"));
                rest = &rest[texts.byte_offset()..];
                word.get_or_insert_default().push_str(&text);
            } else if next.is_whitespace() {
                words.extend(word.take());
                rest = &rest[next.len_utf8()..];
            } else {
                word.get_or_insert_default().push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
        words.extend(word);
        Self(words.into())
    }

    pub(crate) fn word(&mut self) -> String {
        self.0.pop_front().expect("a word is missing")
    }

    pub(crate) fn number(&mut self) -> u64 {
        number(&self.word())
    }

    /// `60s` and `5ms` count from the turn's time; `@7` is absolute; `max` is the end of time.
    pub(crate) fn time(&mut self) -> u64 {
        time(&self.word())
    }

    pub(crate) fn expect_end(&self, line: &str) {
        assert!(self.0.is_empty(), "{:?} left over in: {line}", self.0);
    }

    /// Takes `name=value`, wherever it stands.
    fn option(&mut self, name: &str) -> Option<String> {
        let is_it = |word: &String| word.split_once('=').is_some_and(|(key, _)| key == name);
        let place = self.0.iter().position(is_it)?;
        let word = self.0.remove(place)?;
        word.split_once('=').map(|(_, value)| value.to_owned())
    }

    /// Takes every `carry=queue:message`.
    fn carried(&mut self) -> Vec<(String, String)> {
        let pair = |text: String| {
            let (queue, message) = text.split_once(':').expect("queue:message");
            (queue.to_owned(), message.to_owned())
        };
        std::iter::from_fn(|| self.option("carry").map(pair)).collect()
    }

    /// An error of user code is just its text; others begin with their family.
    fn error(&mut self, kind: AppErrorKind) -> ErrorDetails {
        let first = self.word();
        match first.as_str() {
            "infrastructure" => {
                let (operation, message) = (self.word(), self.word());
                ErrorDetails::Infrastructure { operation, message, retryable: true }
            }
            "nondeterminism" => ErrorDetails::nondeterminism(self.word()),
            "cancelled" => ErrorDetails::cancelled(self.word()),
            "poison" => ErrorDetails::Poison {
                attempt_count: 11,
                max_attempts: 10,
                message_type: PoisonMessageType::Activity {
                    instance: INSTANCE.to_owned(),
                    execution_id: 1,
                    activity_name: self.word(),
                    activity_id: self.number(),
                },
                message: "{}".to_owned(),
            },
            _ => ErrorDetails::application(kind, first),
        }
    }
}

/// Source and kind of an event.
pub(super) fn event(words: &mut Words) -> (Option<u64>, EventKind) {
    let word = words.word();
    if let Some(kind) = sourceless(&word, words) {
        return (None, kind);
    }
    // `-` stands for an answer that names no schedule.
    let source = Some(words.word()).filter(|word| word != "-").map(|word| number(&word));
    let kind = match word.as_str() {
        "activity-completed" => EventKind::ActivityCompleted { result: words.word() },
        "activity-failed" => {
            EventKind::ActivityFailed { details: words.error(AppErrorKind::ActivityFailed) }
        }
        "timer-fired" => EventKind::TimerFired { fire_at_ms: words.time() },
        "child-completed" => EventKind::SubOrchestrationCompleted { result: words.word() },
        "child-failed" => {
            let details = words.error(AppErrorKind::OrchestrationFailed);
            EventKind::SubOrchestrationFailed { details }
        }
        "activity-cancelled" => EventKind::ActivityCancelRequested { reason: words.word() },
        "child-cancelled" => EventKind::SubOrchestrationCancelRequested { reason: words.word() },
        "wait-cancelled" => EventKind::ExternalSubscribedCancelled { reason: words.word() },
        "dequeue-cancelled" => EventKind::QueueSubscriptionCancelled { reason: words.word() },
        other => panic!("no such event: {other}"),
    };
    (source, kind)
}

fn sourceless(word: &str, words: &mut Words) -> Option<EventKind> {
    Some(match word {
        "started" => started(words),
        "completed" => EventKind::OrchestrationCompleted { output: words.word() },
        "failed" => {
            let details = words.error(AppErrorKind::OrchestrationFailed);
            EventKind::OrchestrationFailed { details }
        }
        "continued" => EventKind::OrchestrationContinuedAsNew { input: words.word() },
        "cancel-requested" => EventKind::OrchestrationCancelRequested { reason: words.word() },
        "activity" => EventKind::ActivityScheduled {
            name: words.word(),
            input: words.word(),
            session_id: words.option("on"),
            tag: words.option("tag"),
        },
        "timer" => EventKind::TimerCreated { fire_at_ms: words.time() },
        "wait" => EventKind::ExternalSubscribed { name: words.word() },
        "raised" => EventKind::ExternalEvent { name: words.word(), data: words.word() },
        "dequeue" => EventKind::QueueSubscribed { name: words.word() },
        "queue" => EventKind::QueueEventDelivered { name: words.word(), data: words.word() },
        "child" => EventKind::SubOrchestrationScheduled {
            name: words.word(),
            instance: words.word(),
            input: words.word(),
        },
        "detached" => EventKind::OrchestrationChained {
            name: words.word(),
            instance: words.word(),
            input: words.word(),
        },
        "status" => EventKind::CustomStatusUpdated { status: Some(words.word()) },
        "status-reset" => EventKind::CustomStatusUpdated { status: None },
        "set" => EventKind::KeyValueSet {
            key: words.word(),
            value: words.word(),
            last_updated_at_ms: words.time(),
        },
        "clear" => EventKind::KeyValueCleared { key: words.word() },
        "clear-all" => EventKind::KeyValuesCleared,
        #[cfg(feature = "replay-version-test")]
        "wait2" => EventKind::ExternalSubscribed2 { name: words.word(), topic: words.word() },
        #[cfg(feature = "replay-version-test")]
        "raised2" => EventKind::ExternalEvent2 {
            name: words.word(),
            topic: words.word(),
            data: words.word(),
        },
        _ => return None,
    })
}

fn started(words: &mut Words) -> EventKind {
    EventKind::OrchestrationStarted {
        name: words.word(),
        version: version(words),
        input: words.word(),
        parent_instance: words.option("parent"),
        parent_id: words.option("parent-id").map(|id| number(&id)),
        parent_execution_id: words.option("parent-exec").map(|id| number(&id)),
        carry_forward_events: Some(words.carried()).filter(|carried| !carried.is_empty()),
        initial_custom_status: words.option("status"),
    }
}

pub(super) fn message(words: &mut Words, execution_id: u64) -> WorkItem {
    let instance = INSTANCE.to_owned();
    let word = words.word();
    match word.as_str() {
        "exec" => {
            let execution_id = words.number();
            message(words, execution_id)
        }
        "raised" => WorkItem::ExternalRaised { instance, name: words.word(), data: words.word() },
        "queue" => WorkItem::QueueMessage { instance, name: words.word(), data: words.word() },
        "cancel" => WorkItem::CancelInstance { instance, reason: words.word() },
        "run" => WorkItem::ActivityExecute {
            instance,
            execution_id,
            id: words.number(),
            name: words.word(),
            input: words.word(),
            session_id: None,
            tag: None,
        },
        "start" | "continue" => start(&word, words),
        #[cfg(feature = "replay-version-test")]
        "raised2" => WorkItem::ExternalRaised2 {
            instance,
            name: words.word(),
            topic: words.word(),
            data: words.word(),
        },
        _ => completion(&word, words, execution_id),
    }
}

fn completion(word: &str, words: &mut Words, execution_id: u64) -> WorkItem {
    let (instance, id) = (INSTANCE.to_owned(), words.number());
    let (parent_instance, parent_id, parent_execution_id) = (instance.clone(), id, execution_id);
    match word {
        "activity-completed" => {
            WorkItem::ActivityCompleted { instance, execution_id, id, result: words.word() }
        }
        "activity-failed" => {
            let details = words.error(AppErrorKind::ActivityFailed);
            WorkItem::ActivityFailed { instance, execution_id, id, details }
        }
        "timer-fired" => {
            WorkItem::TimerFired { instance, execution_id, id, fire_at_ms: words.time() }
        }
        "child-completed" => {
            let result = words.word();
            WorkItem::SubOrchCompleted { parent_instance, parent_execution_id, parent_id, result }
        }
        "child-failed" => {
            let details = words.error(AppErrorKind::OrchestrationFailed);
            WorkItem::SubOrchFailed { parent_instance, parent_execution_id, parent_id, details }
        }
        other => panic!("no such message: {other}"),
    }
}

fn start(word: &str, words: &mut Words) -> WorkItem {
    let instance = INSTANCE.to_owned();
    let (orchestration, input) = (words.word(), words.word());
    let version = words.option("version");
    let parent_instance = words.option("parent");
    let parent_id = words.option("parent-id").map(|id| number(&id));
    let parent_execution_id = words.option("parent-exec").map(|id| number(&id));
    if word == "start" {
        return WorkItem::StartOrchestration {
            instance,
            orchestration,
            input,
            version,
            parent_instance,
            parent_id,
            parent_execution_id,
            execution_id: 1,
        };
    }
    WorkItem::ContinueAsNew {
        instance,
        orchestration,
        input,
        version,
        parent_instance,
        parent_id,
        parent_execution_id,
        carry_forward_events: words.carried(),
        initial_custom_status: words.option("status"),
    }
}

fn version(words: &mut Words) -> String {
    words.word().strip_prefix('v').expect("a version: v1.0.0").to_owned()
}

fn number(word: &str) -> u64 {
    if word == "max" { u64::MAX } else { word.parse().expect("a number") }
}

fn time(word: &str) -> u64 {
    let number = |text: &str| text.parse::<u64>().expect("a time: 60s, 5ms, @7, max");
    match word {
        "max" => u64::MAX,
        _ if word.starts_with('@') => number(&word[1..]),
        _ if word.ends_with("ms") => NOW_MS + number(&word[..word.len() - 2]),
        _ => NOW_MS + 1000 * number(word.strip_suffix('s').unwrap_or(word)),
    }
}
