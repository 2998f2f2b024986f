//! What a store answers, in a form that can be compared: what may differ between good stores is
//! left out or brought into order.

use std::collections::{BTreeMap, BTreeSet};

use duroxide_core::model::{SystemStats, WorkItem};

use super::ops::Op;
use crate::providers::{FetchedTurn, InstanceTree, ProviderError, TurnCommit};

/// How the memory provider refuses a token that it does not know, and every other store has to.
const INVALID_TOKEN: &str = "Invalid lock token";
/// Words that an error has to contain if that of the memory provider does.
const TELLING_WORDS: &[&str] =
    &["not found", "still running", "sub-orchestration", "created after tree traversal"];

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    /// What was said, as text.
    pub(super) said: Result<String, ProviderError>,
    /// A lock that came with it, by its token.
    pub(super) handed: Option<(String, Handed)>,
}

/// What a lock is on.
#[derive(Debug, Clone)]
pub(super) enum Handed {
    /// An instance.
    Turn(TurnFacts),
    /// An activity.
    Work(WorkItem),
}

/// What a commit has to know of its turn.
#[derive(Debug, Clone, Default)]
pub(super) struct TurnFacts {
    pub(super) instance: String,
    pub(super) execution_id: u64,
    pub(super) last_event_id: u64,
    /// Whether the turn begins the next execution.
    pub(super) continues: bool,
}

impl Answer {
    /// An answer without a lock.
    pub(super) fn plain(said: Result<String, ProviderError>) -> Self {
        Self { said, handed: None }
    }

    /// A fetched turn with its history.
    pub(super) fn turn(turn: FetchedTurn) -> Self {
        let FetchedTurn { item, lock_token, attempt_count, .. } = turn;
        let (last_event_id, last_event_at_ms) = (turn.last_event_id, turn.last_event_at_ms);
        let facts = TurnFacts {
            instance: item.instance.clone(),
            execution_id: item.execution_id,
            last_event_id,
            continues: last_event_id > 0
                && item.messages.iter().any(|m| matches!(m, WorkItem::ContinueAsNew { .. })),
        };
        let values: BTreeMap<_, _> = item.kv_snapshot.into_iter().collect();
        let said = format!(
            "{:?} named {:?} {:?}, execution {}, attempt {attempt_count}, last event \
             {last_event_id} at {last_event_at_ms}, damaged: {}, messages {:?}, values {values:?}, history {:?}",
            item.instance,
            item.orchestration_name,
            item.version,
            item.execution_id,
            item.history_error.is_some(),
            item.messages,
            item.history,
        );
        Self { said: Ok(said), handed: Some((lock_token, Handed::Turn(facts))) }
    }

    /// A fetched activity.
    pub(super) fn work(item: WorkItem, token: String, attempt: u32) -> Self {
        let said = format!("attempt {attempt}, {item:?}");
        Self { said: Ok(said), handed: Some((token, Handed::Work(item))) }
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        match &self.said {
            Ok(said) => said.clone(),
            Err(error) if error.retryable => format!("refused, to be tried again: {error}"),
            Err(error) => format!("refused: {error}"),
        }
    }
}

/// Whether the other store answered as the memory provider did.
pub(super) fn is_same(op: &Op, memory: &Answer, other: &Answer) -> bool {
    match (&memory.said, &other.said) {
        (Ok(memory), Ok(other)) => memory == other,
        (Err(memory), Err(other)) => {
            memory.retryable == other.retryable
                && (!is_wrong_by_token(op, memory) || other.message.contains(INVALID_TOKEN))
                && tells_why(op, memory, other)
        }
        _ => false,
    }
}

/// Whether an error has the words that tell why, where callers read them.
fn tells_why(op: &Op, memory: &ProviderError, other: &ProviderError) -> bool {
    let said = other.message.to_lowercase();
    let mut telling = TELLING_WORDS.iter().filter(|word| memory.message.contains(**word));
    match op {
        // Several instances can be refused for several reasons; any of them will do.
        Op::DeleteExactly { .. } => TELLING_WORDS.iter().any(|word| said.contains(word)),
        _ => telling.all(|word| said.contains(word)),
    }
}

/// Whether nothing is wrong with a commit but its token (R8.40). Of two reasons either will do.
fn is_wrong_by_token(op: &Op, memory: &ProviderError) -> bool {
    let Op::Commit { commit, .. } = op else { return false };
    let Ok(turns) = commit.turns() else { return false };
    memory.message == INVALID_TOKEN && turns.into_iter().all(is_sound)
}

/// Whether nothing is wrong with a turn that can be told without looking at the store.
fn is_sound(turn: &TurnCommit) -> bool {
    let ids: BTreeSet<u64> = turn.history_delta.iter().map(|event| event.event_id).collect();
    let is_work = |item: &WorkItem| item.orchestration_key().is_none();
    ids.len() == turn.history_delta.len()
        && !ids.contains(&0)
        && turn.worker_items.iter().all(is_work)
        && !turn.orchestrator_items.iter().any(is_work)
}

/// An answer of a dump: errors without their text.
pub(super) fn dumped<T>(
    answer: Result<T, ProviderError>,
    show: impl FnOnce(T) -> String,
) -> String {
    match answer {
        Ok(value) => show(value),
        Err(error) => {
            let unknown = error.message.to_lowercase().contains("not found");
            format!("refused, retryable: {}, not found: {unknown}", error.retryable)
        }
    }
}

/// Sizes, without the bytes of the history: stores write events as they like.
pub(super) fn sizes(stats: SystemStats) -> String {
    let measured = stats.history_size_bytes > 0;
    format!("{:?}, measured: {measured}", SystemStats { history_size_bytes: 0, ..stats })
}

/// A tree: its root, then the rest by name.
pub(super) fn tree(tree: InstanceTree) -> String {
    let InstanceTree { root_id, mut all_ids } = tree;
    if let Some((_, rest)) = all_ids.split_first_mut() {
        rest.sort();
    }
    format!("{root_id:?}: {all_ids:?}")
}

/// Names in no promised order.
pub(super) fn sorted(mut names: Vec<String>) -> String {
    names.sort();
    format!("{names:?}")
}
