//! join and select. A join of many polls those that were woken; those of two or three poll all their
//! unfinished children on each pass, in argument order (R3.124, R3.125).

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use super::OrchestrationContext;
use super::branches::Branches;

/// Which of two futures won, with its value.
///
/// ```
/// # use duroxide_core::context::Either2;
/// let winner: Either2<u8, u8> = Either2::Second(7);
/// assert!(winner.is_second());
/// assert_eq!(winner.into_tuple(), (1, 7));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Either2<A, B> {
    /// The first.
    First(A),
    /// The second.
    Second(B),
}

impl<A, B> Either2<A, B> {
    /// Whether the first won.
    pub fn is_first(&self) -> bool {
        matches!(self, Self::First(_))
    }

    /// Whether the second won.
    pub fn is_second(&self) -> bool {
        matches!(self, Self::Second(_))
    }

    /// Position of the winner, from 0.
    pub fn index(&self) -> usize {
        match self {
            Self::First(_) => 0,
            Self::Second(_) => 1,
        }
    }
}

impl<T> Either2<T, T> {
    /// Position of the winner, from 0, and its value.
    pub fn into_tuple(self) -> (usize, T) {
        match self {
            Self::First(value) => (0, value),
            Self::Second(value) => (1, value),
        }
    }
}

/// Which of three futures won, with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Either3<A, B, C> {
    /// The first.
    First(A),
    /// The second.
    Second(B),
    /// The third.
    Third(C),
}

impl<A, B, C> Either3<A, B, C> {
    /// Position of the winner, from 0.
    pub fn index(&self) -> usize {
        match self {
            Self::First(_) => 0,
            Self::Second(_) => 1,
            Self::Third(_) => 2,
        }
    }
}

impl<T> Either3<T, T, T> {
    /// Position of the winner, from 0, and its value.
    pub fn into_tuple(self) -> (usize, T) {
        match self {
            Self::First(value) => (0, value),
            Self::Second(value) => (1, value),
            Self::Third(value) => (2, value),
        }
    }
}

impl OrchestrationContext {
    /// Waits for all; results in argument order.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// async fn shrink_all(ctx: OrchestrationContext, images: Vec<String>) -> Result<Vec<String>, String> {
    ///     let all = images.iter().map(|image| ctx.schedule_activity("Shrink", image.as_str())).collect();
    ///     ctx.join(all).await.into_iter().collect() // In the order of the images, or the first error.
    /// }
    /// ```
    pub async fn join<T, F>(&self, futures: Vec<F>) -> Vec<T>
    where
        F: Future<Output = T>,
    {
        let mut branches = Branches::new(futures, self.inner.wakes.then(|| self.wakeup()));
        poll_fn(|cx| branches.poll(cx)).await;
        branches.into_values()
    }

    /// Waits for both.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// async fn trip(ctx: OrchestrationContext, city: String) -> Result<String, String> {
    ///     let flight = ctx.schedule_activity("BookFlight", city.as_str());
    ///     let hotel = ctx.schedule_sub_orchestration("BookHotel", city.as_str());
    ///     let (flight, hotel) = ctx.join2(flight, hotel).await;
    ///     Ok(format!("{} and {}", flight?, hotel?))
    /// }
    /// ```
    pub async fn join2<T1, T2, F1, F2>(&self, f1: F1, f2: F2) -> (T1, T2)
    where
        F1: Future<Output = T1>,
        F2: Future<Output = T2>,
    {
        let (mut f1, mut f2) = (pin!(Some(f1)), pin!(Some(f2)));
        let (mut v1, mut v2) = (None, None);
        poll_fn(move |cx| {
            poll_unfinished(f1.as_mut(), &mut v1, cx);
            poll_unfinished(f2.as_mut(), &mut v2, cx);
            if v1.is_none() || v2.is_none() {
                return Poll::Pending;
            }
            v1.take().zip(v2.take()).map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Waits for all three.
    pub async fn join3<T1, T2, T3, F1, F2, F3>(&self, f1: F1, f2: F2, f3: F3) -> (T1, T2, T3)
    where
        F1: Future<Output = T1>,
        F2: Future<Output = T2>,
        F3: Future<Output = T3>,
    {
        let ((v1, v2), v3) = self.join2(self.join2(f1, f2), f3).await;
        (v1, v2, v3)
    }

    /// Waits for the first of two; the other is dropped, which cancels its work.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// # use std::time::Duration;
    /// # use duroxide_core::context::Either2;
    /// async fn ask(ctx: OrchestrationContext, who: String) -> Result<String, String> {
    ///     let answer = ctx.schedule_wait("Answer");
    ///     match ctx.select2(answer, ctx.schedule_timer(Duration::from_secs(3600))).await {
    ///         Either2::First(answer) => Ok(answer),
    ///         Either2::Second(()) => Err(format!("{who} did not answer")),
    ///     }
    /// }
    ///
    /// /// A future that is lent, not given, is not cancelled by losing.
    /// async fn ask_patiently(ctx: OrchestrationContext, who: String) -> Result<String, String> {
    ///     let mut answer = ctx.schedule_wait("Answer");
    ///     loop {
    ///         let day = ctx.schedule_timer(Duration::from_secs(24 * 3600));
    ///         match ctx.select2(&mut answer, day).await {
    ///             Either2::First(answer) => return Ok(answer),
    ///             Either2::Second(()) => ctx.schedule_activity("Remind", who.as_str()).await?,
    ///         };
    ///     }
    /// }
    /// ```
    pub async fn select2<T1, T2, F1, F2>(&self, f1: F1, f2: F2) -> Either2<T1, T2>
    where
        F1: Future<Output = T1>,
        F2: Future<Output = T2>,
    {
        select2(f1, f2).await
    }

    /// Waits for the first of three; the others are dropped, which cancels their work.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// # use std::time::Duration;
    /// # use duroxide_core::context::Either3;
    /// async fn review(ctx: OrchestrationContext, _text: String) -> Result<String, String> {
    ///     let (yes, no) = (ctx.schedule_wait("Approve"), ctx.schedule_wait("Reject"));
    ///     Ok(match ctx.select3(yes, no, ctx.schedule_timer(Duration::from_secs(3600))).await {
    ///         Either3::First(by) => format!("approved by {by}"),
    ///         Either3::Second(by) => format!("rejected by {by}"),
    ///         Either3::Third(()) => "too late".into(),
    ///     })
    /// }
    /// ```
    pub async fn select3<T1, T2, T3, F1, F2, F3>(
        &self,
        f1: F1,
        f2: F2,
        f3: F3,
    ) -> Either3<T1, T2, T3>
    where
        F1: Future<Output = T1>,
        F2: Future<Output = T2>,
        F3: Future<Output = T3>,
    {
        match select2(f1, select2(f2, f3)).await {
            Either2::First(value) => Either3::First(value),
            Either2::Second(Either2::First(value)) => Either3::Second(value),
            Either2::Second(Either2::Second(value)) => Either3::Third(value),
        }
    }
}

pub(super) async fn select2<F1: Future, F2: Future>(
    f1: F1,
    f2: F2,
) -> Either2<F1::Output, F2::Output> {
    let (mut f1, mut f2) = (pin!(f1), pin!(f2));
    poll_fn(move |cx| {
        if let Poll::Ready(value) = f1.as_mut().poll(cx) {
            return Poll::Ready(Either2::First(value));
        }
        f2.as_mut().poll(cx).map(Either2::Second)
    })
    .await
}

/// Polls an unfinished child of a join; a finished one is dropped at once, its value kept.
fn poll_unfinished<F: Future>(
    mut future: Pin<&mut Option<F>>,
    value: &mut Option<F::Output>,
    cx: &mut Context<'_>,
) {
    let Some(unfinished) = future.as_mut().as_pin_mut() else { return };
    if let Poll::Ready(output) = unfinished.poll(cx) {
        future.set(None);
        *value = Some(output);
    }
}
