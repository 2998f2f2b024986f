//! Deletions that leave something of a life to the next one.

use std::time::Duration;

use duroxide::providers::memory::MemorySnapshot;
use duroxide::providers::{DeleteRefused, Provider, ProviderAdmin, ProviderError};

use super::list::Mutant;
use super::wrapper::MutantProvider;

impl MutantProvider {
    /// Whether a deletion leaves something of the children of those it deletes.
    pub fn leaves_of_lives(&self) -> bool {
        matches!(
            self.mutant,
            Some(
                Mutant::LeavesStarts
                    | Mutant::LeavesDelayedStarts
                    | Mutant::LeavesFetchedStarts
                    | Mutant::LeavesMailOfStarts
                    | Mutant::LeavesStartsForOthers
                    | Mutant::DeliversLateAnswers
            )
        )
    }

    /// Puts back what a deletion of these instances was to take along.
    pub async fn leave_of(
        &self,
        before: &MemorySnapshot,
        ids: &[String],
    ) -> Result<(), ProviderError> {
        let is_start = |parent: Option<&str>| ids.iter().any(|id| Some(id.as_str()) == parent);
        for row in &before.orchestrator_queue {
            let of_child = before.orchestrator_queue.iter().any(|other| {
                other.instance == row.instance && is_start(other.item.parent_of_start())
            });
            let is_start = is_start(row.item.parent_of_start());
            let exists = before.instances.get(&row.instance).is_some_and(|i| i.has_row);
            let is_delayed = before.taken_at_ms < row.visible_at;
            let stays = match self.mutant {
                Some(Mutant::LeavesStarts | Mutant::BulkLeavesStarts) => is_start,
                Some(Mutant::LeavesDelayedStarts) => is_start && is_delayed,
                Some(Mutant::LeavesFetchedStarts) => is_start && row.tagged,
                Some(Mutant::LeavesMailOfStarts) => of_child && !is_start && !exists,
                Some(Mutant::LeavesStartsForOthers) => is_start && exists,
                _ => false,
            };
            if stays {
                let delay = row.visible_at.saturating_sub(before.taken_at_ms);
                let delay = Some(Duration::from_millis(delay));
                self.inner.enqueue_for_orchestrator(row.item.clone(), delay).await?;
            }
        }
        self.deliver_late_answers(before, ids).await
    }

    /// As if children that are deleted in their turns had ended them.
    async fn deliver_late_answers(
        &self,
        before: &MemorySnapshot,
        ids: &[String],
    ) -> Result<(), ProviderError> {
        if !self.is(Mutant::DeliversLateAnswers) {
            return Ok(());
        }
        for (child, instance) in &before.instances {
            let parent = instance.parent.clone().filter(|parent| ids.contains(parent));
            if let Some(parent_instance) =
                parent.filter(|_| before.instance_locks.contains_key(child))
            {
                let answer = duroxide::providers::WorkItem::SubOrchCompleted {
                    parent_instance,
                    parent_execution_id: 1,
                    parent_id: 2,
                    result: "late".to_owned(),
                };
                self.inner.enqueue_for_orchestrator(answer, None).await?;
            }
        }
        Ok(())
    }

    /// Refuses to delete a child, whether or not there is a parent.
    pub async fn refuse_orphan(&self, id: &str) -> Result<(), ProviderError> {
        if self.is(Mutant::KeepsOrphans)
            && let Ok(Some(_)) = self.inner.get_parent_id(id).await
        {
            return Err(DeleteRefused::SubOrchestration.into_error(id));
        }
        Ok(())
    }
}
