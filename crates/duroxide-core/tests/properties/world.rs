//! A world for orchestrations: it carries out what turns ask for, in any order it is told, with the
//! repetitions and delays that real queues have.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use duroxide_core::context::OrchestrationHandler;
use duroxide_core::model::{
    AppErrorKind, ErrorDetails, Event, EventKind, KvEntry, SYSCALL_NEW_GUID, SYSCALL_PREFIX,
    SYSCALL_UTC_NOW_MS, WorkItem,
};
use duroxide_core::replay::{
    ForeignWait, HistoryManager, SystemCalls, Turn, TurnOutcome, TurnStatus, WorkItemReader,
    run_turn,
};

pub(crate) const INSTANCE: &str = "i";

/// Numbers that decide everything that is left to chance, over and over.
#[derive(Debug, Clone)]
pub(crate) struct Choices {
    numbers: VecDeque<u8>,
}

impl Choices {
    pub(crate) fn new(numbers: Vec<u8>) -> Self {
        let numbers = if numbers.is_empty() { vec![0] } else { numbers };
        Self { numbers: numbers.into() }
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.numbers.rotate_left(1);
        usize::from(self.numbers[0]) % end.max(1)
    }

    /// True about once in `n` times.
    pub(crate) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// One instance and everything around it.
pub(crate) struct World {
    pub(crate) handler: Arc<dyn OrchestrationHandler>,
    pub(crate) execution_id: u64,
    pub(crate) history: Vec<Event>,
    pub(crate) kv_snapshot: HashMap<String, KvEntry>,
    pub(crate) now_ms: u64,
    /// Messages on their way, in no order.
    pub(crate) on_the_way: Vec<WorkItem>,
    pub(crate) ended: Option<TurnStatus>,
    /// Histories of executions before this one.
    pub(crate) past: Vec<Vec<Event>>,
}

impl World {
    pub(crate) fn new(handler: Arc<dyn OrchestrationHandler>) -> Self {
        Self {
            handler,
            execution_id: 1,
            history: Vec::new(),
            kv_snapshot: HashMap::new(),
            now_ms: 1_000_000,
            on_the_way: vec![start()],
            ended: None,
            past: Vec::new(),
        }
    }

    /// The turn that takes these messages.
    pub(crate) fn turn(&self, messages: &[WorkItem], system_calls: bool) -> Turn {
        let manager = HistoryManager::from_history(&self.history);
        let messages = WorkItemReader::from_messages(messages, &manager, INSTANCE);
        let continues = messages.is_continue_as_new;
        let guids = if continues { 0 } else { guids_before(&self.history, u64::MAX) };
        let calls = Calls { now_ms: self.now_ms, guids };
        Turn {
            instance: INSTANCE.to_owned(),
            execution_id: self.execution_id + u64::from(continues),
            history: if continues { Vec::new() } else { self.history.clone() },
            version: "1.0.0".to_owned(),
            messages,
            handler: self.handler.clone(),
            kv_snapshot: self.kv_snapshot.clone(),
            now_ms: self.now_ms,
            system_calls: system_calls.then(|| Box::new(calls) as Box<dyn SystemCalls>),
            foreign_wait: ForeignWait::Fail,
            parent_execution_fallback: 1,
        }
    }

    /// Runs a turn and commits it.
    pub(crate) fn take(&mut self, messages: &[WorkItem], system_calls: bool) -> TurnOutcome {
        let turn = self.turn(messages, system_calls);
        let begins = turn.execution_id > self.execution_id;
        let outcome = run_turn(turn);
        if begins {
            self.execution_id += 1;
            self.past.push(std::mem::take(&mut self.history));
        }
        self.commit(&outcome);
        outcome
    }

    fn commit(&mut self, outcome: &TurnOutcome) {
        self.history.extend(outcome.events.iter().cloned());
        for item in outcome.activities.iter().chain(&outcome.messages) {
            let answer = self.answer(item);
            self.on_the_way.extend(answer);
        }
        match &outcome.status {
            TurnStatus::Running => {}
            TurnStatus::ContinuedAsNew(_) => self.complete_values(),
            ended => self.ended = Some(ended.clone()),
        }
    }

    /// Snapshots hold what completed executions wrote (R4.82).
    fn complete_values(&mut self) {
        for event in &self.history {
            match &event.kind {
                EventKind::KeyValueSet { key, value, last_updated_at_ms } => {
                    let (value, last_updated_at_ms) = (value.clone(), *last_updated_at_ms);
                    self.kv_snapshot.insert(key.clone(), KvEntry { value, last_updated_at_ms });
                }
                EventKind::KeyValueCleared { key } => drop(self.kv_snapshot.remove(key)),
                EventKind::KeyValuesCleared => self.kv_snapshot.clear(),
                _ => {}
            }
        }
    }

    /// What comes back for something sent out.
    fn answer(&self, item: &WorkItem) -> Option<WorkItem> {
        let instance = INSTANCE.to_owned();
        match item.clone() {
            WorkItem::ActivityExecute { execution_id, id, name, input, .. } => {
                let result = match name.as_str() {
                    SYSCALL_NEW_GUID => format!("guid-{}", guids_before(&self.history, id)),
                    SYSCALL_UTC_NOW_MS => self.now_ms.to_string(),
                    _ => format!("{name}({input})"),
                };
                Some(activity_answer(execution_id, id, result))
            }
            WorkItem::TimerFired { .. } | WorkItem::ContinueAsNew { .. } => Some(item.clone()),
            WorkItem::StartOrchestration {
                parent_id: Some(parent_id),
                parent_execution_id: Some(parent_execution_id),
                orchestration,
                ..
            } => {
                let fails = orchestration == "C2";
                Some(child_answer(instance, parent_execution_id, parent_id, fails))
            }
            _ => None,
        }
    }
}

fn start() -> WorkItem {
    WorkItem::StartOrchestration {
        instance: INSTANCE.to_owned(),
        orchestration: "O".to_owned(),
        input: "in".to_owned(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

fn activity_answer(execution_id: u64, id: u64, result: String) -> WorkItem {
    let instance = INSTANCE.to_owned();
    if result.starts_with("A2") {
        let details = ErrorDetails::application(AppErrorKind::ActivityFailed, result);
        return WorkItem::ActivityFailed { instance, execution_id, id, details };
    }
    WorkItem::ActivityCompleted { instance, execution_id, id, result }
}

/// How many random numbers the execution had asked for before this event: what they are depends on
/// nothing else.
fn guids_before(history: &[Event], event_id: u64) -> usize {
    let earlier = history.iter().filter(|event| event.event_id < event_id);
    earlier
        .filter(|event| {
            matches!(&event.kind, EventKind::ActivityScheduled { name, .. } if name == SYSCALL_NEW_GUID)
        })
        .count()
}

fn child_answer(
    parent_instance: String,
    parent_execution_id: u64,
    parent_id: u64,
    fails: bool,
) -> WorkItem {
    if fails {
        let details = ErrorDetails::cancelled("by somebody");
        return WorkItem::SubOrchFailed {
            parent_instance,
            parent_execution_id,
            parent_id,
            details,
        };
    }
    let result = "child".to_owned();
    WorkItem::SubOrchCompleted { parent_instance, parent_execution_id, parent_id, result }
}

pub(crate) fn queue_message(queue: usize, n: usize) -> WorkItem {
    WorkItem::QueueMessage {
        instance: INSTANCE.to_owned(),
        name: format!("q{queue}"),
        data: format!("m{n}"),
    }
}

pub(crate) fn signal(name: usize, n: usize) -> WorkItem {
    WorkItem::ExternalRaised {
        instance: INSTANCE.to_owned(),
        name: format!("w{name}"),
        data: format!("s{n}"),
    }
}

/// System calls with answers of this turn.
struct Calls {
    now_ms: u64,
    guids: usize,
}

impl SystemCalls for Calls {
    fn answer(&mut self, name: &str, _input: &str) -> Option<Result<String, String>> {
        assert!(name.starts_with(SYSCALL_PREFIX));
        match name {
            SYSCALL_NEW_GUID => {
                self.guids += 1;
                Some(Ok(format!("guid-{}", self.guids - 1)))
            }
            SYSCALL_UTC_NOW_MS => Some(Ok(self.now_ms.to_string())),
            _ => None,
        }
    }
}
