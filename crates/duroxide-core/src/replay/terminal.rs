//! From a turn's result to its last events and its messages (§3.10, §3.12).

use std::collections::HashSet;

use super::engine::{ReplayEngine, TurnResult};
use super::index::Class;
use super::outcome::{FinishedChild, TurnOutcome, TurnStatus};
use super::subscriptions::{outstanding, unread_by_count};
use crate::context::Operation;
use crate::model::{
    Action, ErrorDetails, EventKind, INITIAL_EXECUTION_ID, WorkItem, build_child_instance_id,
};

/// Reason of a breadcrumb written because the execution ended (R2.42).
const ORCHESTRATION_TERMINAL: &str = "orchestration_terminal";
const PARENT_DROPPED: &str = "parent dropped sub-orchestration future";
const PARENT_CANCELED: &str = "parent canceled";
const PARENT_FAILED: &str = "parent failed";

/// A turn whose code has run.
pub(super) struct Ending<'e> {
    pub(super) engine: &'e mut ReplayEngine,
    pub(super) name: String,
    /// Instance, execution and schedule event to notify, as recorded.
    pub(super) parent: Option<(String, Option<u64>, u64)>,
    pub(super) parent_execution_fallback: u64,
}

impl Ending<'_> {
    pub(super) fn into_outcome(mut self, result: TurnResult) -> TurnOutcome {
        let mut activities = Vec::new();
        let mut messages = Vec::new();
        let status = match result {
            TurnResult::Continue => {
                activities = self.activities();
                messages.extend(self.starts(|_| true));
                messages.extend(self.dropped_child_cancels(|_| true));
                TurnStatus::Running
            }
            TurnResult::Completed(output) => {
                messages.extend(self.detached_starts());
                self.end(EventKind::OrchestrationCompleted { output: output.clone() }, "completed");
                messages.extend(self.tell_parent(Ok(&output)));
                messages.extend(self.dropped_started_child_cancels());
                TurnStatus::Completed(output)
            }
            TurnResult::Failed(details) => {
                messages.extend(self.detached_starts());
                let open = self.children_of_a_broken_parent();
                self.end(EventKind::OrchestrationFailed { details: details.clone() }, "failed");
                messages.extend(self.tell_parent(Err(&details)));
                messages.extend(self.dropped_started_child_cancels());
                messages.extend(self.cancels(open, PARENT_FAILED));
                TurnStatus::Failed(details)
            }
            TurnResult::Cancelled(reason) => {
                messages.extend(self.detached_starts());
                let details = ErrorDetails::cancelled(reason);
                let open = self.started_open_children();
                self.end(EventKind::OrchestrationFailed { details: details.clone() }, "failed");
                messages.extend(self.cancels(open, PARENT_CANCELED));
                messages.extend(self.tell_parent(Err(&details)));
                TurnStatus::Failed(details)
            }
            TurnResult::ContinueAsNew { input, version, unconsumed_queue_arrivals } => {
                messages.extend(self.starts_before_continuing());
                messages.push(self.continue_as_new(&input, version, unconsumed_queue_arrivals));
                let kind = EventKind::OrchestrationContinuedAsNew { input: input.clone() };
                self.end(kind, "continued_as_new");
                TurnStatus::ContinuedAsNew(input)
            }
        };
        self.outcome(status, activities, messages)
    }

    /// The failure of an execution whose code was not run: one event, and word to parent and children.
    pub(super) fn into_failure(self, details: ErrorDetails) -> TurnOutcome {
        let open = self.started_open_children();
        self.engine.record(None, EventKind::OrchestrationFailed { details: details.clone() });
        let mut messages = Vec::from_iter(self.tell_parent(Err(&details)));
        messages.extend(self.cancels(open, PARENT_FAILED));
        self.outcome(TurnStatus::Failed(details), Vec::new(), messages)
    }

    fn outcome(
        self,
        status: TurnStatus,
        activities: Vec<WorkItem>,
        messages: Vec<WorkItem>,
    ) -> TurnOutcome {
        let finished_children = self.finished_children();
        let dropped_timers = match status {
            TurnStatus::Running => self.engine.timers_without_listener(),
            _ => Vec::new(), // An execution that has ended takes no notice of timers.
        };
        let kv_changes = match status {
            TurnStatus::ContinuedAsNew(_) => self.kv_changes(),
            _ => Vec::new(),
        };
        let engine = self.engine;
        let events = engine.take_new_events();
        TurnOutcome {
            activities,
            messages,
            cancelled: without_repetition(&engine.cancelled_activity_ids),
            status,
            dropped_timers,
            finished_children,
            divergence: engine.report.take(),
            waits_for_foreign: engine.waits_for_foreign,
            kv_changes,
            events,
        }
    }

    fn kv_changes(&self) -> Vec<EventKind> {
        let is_change = |kind: &&EventKind| {
            matches!(
                kind,
                EventKind::KeyValueSet { .. }
                    | EventKind::KeyValueCleared { .. }
                    | EventKind::KeyValuesCleared
            )
        };
        self.engine.history().map(|event| &event.kind).filter(is_change).cloned().collect()
    }

    /// Children whose results this turn took in.
    fn finished_children(&self) -> Vec<FinishedChild> {
        let results = self.engine.history_delta().iter().filter_map(|event| {
            let succeeded = match event.kind {
                EventKind::SubOrchestrationCompleted { .. } => true,
                EventKind::SubOrchestrationFailed { .. } => false,
                _ => return None,
            };
            let schedule = self.engine.index.get(event.source_event_id?)?;
            Some((event, succeeded, self.engine.event_at(schedule.position)?))
        });
        results
            .filter_map(|(event, succeeded, scheduled)| match &scheduled.kind {
                EventKind::SubOrchestrationScheduled { name, .. } => Some(FinishedChild {
                    name: name.clone(),
                    succeeded,
                    took_ms: event.timestamp_ms.saturating_sub(scheduled.timestamp_ms),
                }),
                _ => None,
            })
            .collect()
    }

    /// Writes the breadcrumbs of open waits, the terminal event, and the cancellations of what is in
    /// flight (R3.106, R1.35).
    fn end(&mut self, terminal: EventKind, word: &str) {
        let (waits, dequeues) = outstanding(self.engine.history());
        for id in waits {
            let reason = ORCHESTRATION_TERMINAL.to_owned();
            self.engine.record(Some(id), EventKind::ExternalSubscribedCancelled { reason });
        }
        for id in dequeues {
            let reason = ORCHESTRATION_TERMINAL.to_owned();
            self.engine.record(Some(id), EventKind::QueueSubscriptionCancelled { reason });
        }
        self.engine.record(None, terminal);
        for (id, _) in self.engine.index.in_flight(Class::Activity) {
            let reason = format!("{ORCHESTRATION_TERMINAL}_{word}");
            self.engine.record(Some(id), EventKind::ActivityCancelRequested { reason });
            self.engine.cancelled_activity_ids.push(id);
        }
    }

    fn activities(&self) -> Vec<WorkItem> {
        let execution_id = self.engine.recorder.execution_id;
        let actions = self.engine.pending_actions.iter();
        actions
            .filter_map(|action| match action.clone() {
                Action::CallActivity { scheduling_event_id, name, input, session_id, tag } => {
                    Some(WorkItem::ActivityExecute {
                        instance: self.engine.recorder.instance.clone(),
                        execution_id,
                        id: scheduling_event_id,
                        name,
                        input,
                        session_id,
                        tag,
                    })
                }
                _ => None,
            })
            .collect()
    }

    fn detached_starts(&self) -> Vec<WorkItem> {
        self.starts(|action| matches!(action, Action::StartOrchestrationDetached { .. }))
    }

    /// What history says was started is started: detached ones, and children that were not dropped. A
    /// result for the ended execution will be ignored, as of any child left running (L34).
    fn starts_before_continuing(&self) -> Vec<WorkItem> {
        let dropped: Vec<u64> = self.engine.dropped_of(Operation::Child).collect();
        self.starts(|action| match action {
            Action::StartOrchestrationDetached { .. } => true,
            Action::StartSubOrchestration { scheduling_event_id, .. } => {
                dropped.binary_search(scheduling_event_id).is_err()
            }
            _ => false,
        })
    }

    /// Messages for the pending timers, children and detached starts that are `wanted`, in order.
    fn starts(&self, wanted: impl Fn(&Action) -> bool) -> Vec<WorkItem> {
        let pending = self.engine.pending_actions.iter();
        pending.filter(|action| wanted(action)).filter_map(|action| self.message(action)).collect()
    }

    fn message(&self, action: &Action) -> Option<WorkItem> {
        let recorder = &self.engine.recorder;
        let (instance, execution_id) = (recorder.instance.clone(), recorder.execution_id);
        Some(match action.clone() {
            Action::CreateTimer { scheduling_event_id: id, fire_at_ms } => {
                self.engine.timer_message(id, fire_at_ms)
            }
            Action::StartSubOrchestration {
                scheduling_event_id,
                name,
                version,
                instance: child,
                input,
            } => WorkItem::StartOrchestration {
                instance: build_child_instance_id(&instance, &child),
                orchestration: name,
                input,
                version,
                parent_instance: Some(instance),
                parent_id: Some(scheduling_event_id),
                parent_execution_id: Some(execution_id),
                execution_id: INITIAL_EXECUTION_ID,
            },
            Action::StartOrchestrationDetached { name, version, instance, input, .. } => {
                WorkItem::StartOrchestration {
                    instance,
                    orchestration: name,
                    input,
                    version,
                    parent_instance: None,
                    parent_id: None,
                    parent_execution_id: None,
                    execution_id: INITIAL_EXECUTION_ID,
                }
            }
            _ => return None,
        })
    }

    fn tell_parent(&self, result: Result<&String, &ErrorDetails>) -> Option<WorkItem> {
        let (parent_instance, parent_execution_id, parent_id) = self.parent.clone()?;
        let parent_execution_id = parent_execution_id.unwrap_or(self.parent_execution_fallback);
        Some(match result {
            Ok(result) => WorkItem::SubOrchCompleted {
                parent_instance,
                parent_execution_id,
                parent_id,
                result: result.clone(),
            },
            Err(details) => WorkItem::SubOrchFailed {
                parent_instance,
                parent_execution_id,
                parent_id,
                details: details.clone(),
            },
        })
    }

    /// A child scheduled in the turn that ends was never started: there is nothing to cancel (L3).
    fn dropped_started_child_cancels(&self) -> Vec<WorkItem> {
        self.dropped_child_cancels(|position| self.was_started(position))
    }

    fn dropped_child_cancels(&self, wanted: impl Fn(usize) -> bool) -> Vec<WorkItem> {
        let position = |id: u64| self.engine.index.get(id).map(|schedule| schedule.position);
        let dropped = self.engine.cancelled_children.iter();
        let wanted = dropped.filter(|(id, _)| position(*id).is_some_and(&wanted));
        self.cancels(wanted.map(|(_, child)| child.clone()).collect(), PARENT_DROPPED)
    }

    /// Code that returned an error has dropped its children, or means to keep them (R3.110); children of
    /// code that did not get to return are cancelled here (L7).
    fn children_of_a_broken_parent(&self) -> Vec<String> {
        if self.engine.code_failed { Vec::new() } else { self.started_open_children() }
    }

    /// Children that run, as recorded ids (L2: those scheduled in this turn do not).
    fn started_open_children(&self) -> Vec<String> {
        let open = self.engine.index.in_flight(Class::Child).into_iter();
        let events = open
            .filter(|(_, schedule)| self.was_started(schedule.position))
            .filter_map(|(_, schedule)| self.engine.event_at(schedule.position));
        events
            .filter_map(|event| match &event.kind {
                EventKind::SubOrchestrationScheduled { instance, .. } => Some(instance.clone()),
                _ => None,
            })
            .collect()
    }

    fn was_started(&self, position: usize) -> bool {
        position < self.engine.persisted_len
    }

    fn cancels(&self, children: Vec<String>, reason: &'static str) -> Vec<WorkItem> {
        let parent = &self.engine.recorder.instance;
        let cancel = |child: String| WorkItem::CancelInstance {
            instance: build_child_instance_id(parent, &child),
            reason: reason.to_owned(),
        };
        children.into_iter().map(cancel).collect()
    }

    /// The start of the successor (R3.111 – R3.114). Its senders were told that their messages are
    /// safe, so all unread ones go along, however many they are.
    fn continue_as_new(
        &self,
        input: &str,
        version: Option<String>,
        unread: Option<Vec<(String, String)>>,
    ) -> WorkItem {
        let instance = self.engine.recorder.instance.clone();
        let carry_forward_events = unread.unwrap_or_else(|| unread_by_count(self.engine.history()));
        let (parent_instance, parent_execution_id, parent_id) = match self.parent.clone() {
            Some((instance, execution, id)) => (Some(instance), execution, Some(id)),
            None => (None, None, None),
        };
        WorkItem::ContinueAsNew {
            instance,
            orchestration: self.name.clone(),
            input: input.to_owned(),
            version,
            parent_instance,
            parent_id,
            parent_execution_id,
            carry_forward_events,
            initial_custom_status: self.engine.custom_status.clone(),
        }
    }
}

fn without_repetition(ids: &[u64]) -> Vec<u64> {
    let mut seen = HashSet::new();
    ids.iter().copied().filter(|id| seen.insert(*id)).collect()
}
