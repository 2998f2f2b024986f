//! What parked fetches can expect: something there already, or something that time will bring.

use super::queued_op::{Queue, QueuedOp};
use super::thread::Writer;
use crate::database::Db;
use crate::tables::{Sql, first, ms_out};

/// How things stand at the end of a transaction. It holds until the next write, here or by another
/// process.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct QueueForecasts {
    turns: QueueForecast,
    work: QueueForecast,
}

/// How things stand with one queue.
#[derive(Debug, Clone, Copy, Default)]
struct QueueForecast {
    /// Whether there is anything that some fetch could take or give up.
    is_open: bool,
    /// When time alone changes something.
    due_at: Option<u64>,
}

impl QueueForecasts {
    /// Looks: each answer is the first entry of an index.
    pub(super) fn of(c: Db<'_>) -> Sql<Self> {
        let found = first(
            c,
            "SELECT
             EXISTS (SELECT 1 FROM mailboxes WHERE head IS NOT NULL)
             OR EXISTS (SELECT 1 FROM mailboxes WHERE state = 4),
             (SELECT visible_at FROM hidden ORDER BY visible_at LIMIT 1),
             (SELECT wake_at FROM mailboxes WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1),
             EXISTS (SELECT 1 FROM work WHERE wake_at IS NULL AND session IS NULL)
             OR EXISTS (SELECT 1 FROM work WHERE wake_at IS NULL AND session IS NOT NULL),
             (SELECT wake_at FROM work WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1),
             (SELECT until FROM sessions WHERE lapsed = 0 ORDER BY until LIMIT 1)",
            [],
            |row| {
                let times = [row.get(1)?, row.get(2)?, row.get(4)?, row.get(5)?];
                Ok((row.get(0)?, row.get(3)?, times))
            },
        )?;
        let Some((turns, work, [message, lock, activity, session])) = found else {
            return Ok(Self::default());
        };
        let first_of = |a: Option<i64>, b: Option<i64>| a.into_iter().chain(b).min().map(ms_out);
        Ok(Self {
            turns: QueueForecast { is_open: turns, due_at: first_of(message, lock) },
            work: QueueForecast { is_open: work, due_at: first_of(activity, session) },
        })
    }

    fn forecast(&self, queue: Queue) -> QueueForecast {
        match queue {
            Queue::Turns => self.turns,
            Queue::Work => self.work,
        }
    }
}

impl Writer {
    /// When time alone changes something for a parked fetch.
    pub(super) fn next_due(&mut self) -> Option<u64> {
        if self.forecasts.is_none() {
            let connection = self.connection.as_ref()?;
            // Should this fail, the next look around is not far, and the next fetch reports it.
            self.forecasts = connection.with(QueueForecasts::of).ok();
        }
        let forecasts = self.forecasts?;
        let waited_for = |queue: &Queue| self.parked.waits_for(*queue);
        let queues = [Queue::Turns, Queue::Work].into_iter().filter(waited_for);
        queues.filter_map(|queue| forecasts.forecast(queue).due_at).min()
    }

    /// Parks the fetches that would find nothing, without a transaction that finds that out.
    pub(super) fn park_without_work(
        &mut self,
        ops: Vec<Box<dyn QueuedOp>>,
    ) -> Vec<Box<dyn QueuedOp>> {
        let (Some(forecasts), Some(_)) = (self.forecasts, &self.connection) else { return ops };
        let now = self.config.clock.now_ms();
        let finds_nothing = |queue| {
            let forecast = forecasts.forecast(queue);
            !forecast.is_open && forecast.due_at.is_none_or(|due| now < due)
        };
        let mut others = Vec::with_capacity(ops.len());
        for op in ops {
            match op.patience() {
                Some(patience) if finds_nothing(patience.queue) => self.parked.add(op),
                _ => others.push(op),
            }
        }
        others
    }
}
