//! Races between messages, signals and timers. Each story is lived by runtimes that know nothing but
//! the store, one for every batch; then it is replayed cold and must end the same.

use std::future::Future;

use duroxide_core::model::{EventKind, WorkItem};

use super::scene::{HOUR, fired, scene, signal};
use crate::provider_validation::ProviderFactory;
use crate::provider_validation::words::*;
use crate::{Either2, OrchestrationContext};

/// Dequeues that lose against a timer take no message with them.
pub async fn test_queue_race_cancellation_replay<F: ProviderFactory>(factory: &F) {
    let says = "a dequeue that lost a race leaves the messages to the next, live and in replay";
    let rule = ("R3.160", says);
    let (one, two) = (queue_message("a", "one"), queue_message("a", "two"));
    let late = vec![fired(3), one.clone()];
    lives(factory, rule, race_then_read, [late, vec![]], "timer one").await;
    let early = vec![one.clone(), fired(3), two];
    lives(factory, rule, race_then_read, [early, vec![]], "one two").await;
    lives(factory, rule, race_then_reader_made_before, [vec![fired(4), one], vec![]], "timer one")
        .await;
}

/// A dequeue (2) against a timer (3), then another dequeue.
async fn race_then_read(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let (message, timer) = (ctx.dequeue_event("q"), ctx.schedule_timer(HOUR));
    let won = winner(ctx.select2(message, timer).await);
    let next = ctx.dequeue_event("q").await;
    end(ctx, [won, next]).await
}

/// A dequeue (2) against a timer (4), then one that was asked for before the race (3).
async fn race_then_reader_made_before(
    ctx: OrchestrationContext,
    _input: String,
) -> Result<String, String> {
    let (message, next) = (ctx.dequeue_event("q"), ctx.dequeue_event("q"));
    let won = winner(ctx.select2(message, ctx.schedule_timer(HOUR)).await);
    let next = next.await;
    end(ctx, [won, next]).await
}

/// Signals go to the wait that was open when they came.
pub async fn test_positional_wait_race_replay<F: ProviderFactory>(factory: &F) {
    let says = "a signal goes to the wait that was open when it came, live and in replay";
    let rule = ("R3.85", says);
    let (one, two) = (signal("s", "one"), signal("s", "two"));
    let early = [vec![one.clone(), fired(3)], vec![two.clone()]];
    lives(factory, rule, race_then_wait, early, "one two").await;
    // Nobody waits for the first signal: the wait before it has lost, the next is not recorded yet.
    let late = [vec![fired(3), one.clone()], vec![two]];
    lives(factory, rule, race_then_wait, late, "timer two").await;
    lives(factory, rule, race_then_wait_made_before, [vec![fired(4), one], vec![]], "timer one")
        .await;
}

/// A wait (2) against a timer (3), then another wait.
async fn race_then_wait(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let (signal, timer) = (ctx.schedule_wait("s"), ctx.schedule_timer(HOUR));
    let won = winner(ctx.select2(signal, timer).await);
    let next = ctx.schedule_wait("s").await;
    end(ctx, [won, next]).await
}

/// A wait (2) against a timer (4), then one that was asked for before the race (3).
async fn race_then_wait_made_before(
    ctx: OrchestrationContext,
    _input: String,
) -> Result<String, String> {
    let (signal, next) = (ctx.schedule_wait("s"), ctx.schedule_wait("s"));
    let won = winner(ctx.select2(signal, ctx.schedule_timer(HOUR)).await);
    let next = next.await;
    end(ctx, [won, next]).await
}

/// Messages nobody read go on to the next execution, in the order they came.
pub async fn test_continue_as_new_queue_race_replay<F: ProviderFactory>(factory: &F) {
    let q = |data: &str| queue_message("a", data);
    let other =
        WorkItem::QueueMessage { instance: "a".into(), name: "r".into(), data: "two".into() };
    let (one, three) = (("q", "one"), ("q", "three"));
    carries(factory, lose_and_continue, [fired(3), q("one"), q("three")], &[one, three]).await;
    carries(factory, hold_and_continue, [q("one"), fired(3)], &[one]).await;
    carries(factory, skip_and_continue, [q("one"), q("two"), q("three")], &[one, three]).await;
    let mixed = [q("one"), other, q("three"), fired(3)];
    carries(factory, hold_and_continue, mixed, &[one, ("r", "two"), three]).await;
}

/// However many they are.
pub async fn every_unread_message_is_carried<F: ProviderFactory>(factory: &F) {
    let texts: Vec<String> = (0..251).map(|n| n.to_string()).collect();
    let batch = texts.iter().map(|text| queue_message("a", text)).chain([fired(3)]);
    let unread: Vec<(&str, &str)> = texts.iter().map(|text| ("q", text.as_str())).collect();
    carries(factory, hold_and_continue, batch, &unread).await;
}

/// A dequeue (2) that loses against a timer (3).
async fn lose_and_continue(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    if input == "next" {
        return read_all(ctx).await;
    }
    let message = ctx.dequeue_event("q");
    ctx.select2(message, ctx.schedule_timer(HOUR)).await;
    ctx.continue_as_new("next").await
}

/// A dequeue (2) that is held while a timer (3) runs, and never asked.
async fn hold_and_continue(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    if input == "next" {
        return read_all(ctx).await;
    }
    let _held = ctx.dequeue_event("q");
    ctx.schedule_timer(HOUR).await;
    ctx.continue_as_new("next").await
}

/// A dequeue (2) that is held, so that the next one (3) reads the second message.
async fn skip_and_continue(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    if input == "next" {
        return read_all(ctx).await;
    }
    let _held = ctx.dequeue_event("q");
    ctx.dequeue_event("q").await;
    ctx.continue_as_new("next").await
}

async fn read_all(ctx: OrchestrationContext) -> Result<String, String> {
    let mut all = Vec::new();
    loop {
        match ctx.dequeue_event("q").await {
            last if last == "end" => return Ok(all.join(" ")),
            message => all.push(message),
        }
    }
}

/// One batch after which the code continues as new, and what the successor must find.
async fn carries<F, Fut>(
    factory: &dyn ProviderFactory,
    code: F,
    batch: impl IntoIterator<Item = WorkItem>,
    unread: &[(&str, &str)],
) where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    let says = "messages nobody read are carried over, each once, in the order they came";
    let scene = scene(factory, ("R3.112", says), code).await;
    scene.batch([start("a")]).await;
    scene.batch(batch).await;
    scene.send([queue_message("a", "end")]).await;
    let in_q = unread.iter().filter(|(name, _)| *name == "q").map(|(_, data)| *data);
    let expected = in_q.collect::<Vec<_>>().join(" ");
    let outcome = scene.outcome("a").await;
    scene.lab.same("what the successor reads", outcome, Ok(expected.clone()));
    let second = scene.execution(2).await;
    let carried = match second.first().map(|event| &event.kind) {
        Some(EventKind::OrchestrationStarted { carry_forward_events: Some(carried), .. }) => {
            carried
        }
        other => scene.lab.broken("a start with the messages nobody read", other),
    };
    let carried: Vec<(&str, &str)> =
        carried.iter().map(|(n, d)| (n.as_str(), d.as_str())).collect();
    scene.lab.same("the messages nobody read", &carried[..], unread);
    let end = format!(
        r#"ContinueAsNew {{ input: "next", version: None, unconsumed_queue_arrivals: Some({unread:?}) }}"#
    );
    scene.replays(1, &end).await;
    scene.replays(2, &format!("Completed({expected:?})")).await;
}

/// Lives through the batches and ends.
async fn lives<F, Fut>(
    factory: &dyn ProviderFactory,
    rule: (&'static str, &'static str),
    code: F,
    batches: [Vec<WorkItem>; 2],
    output: &str,
) where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    let scene = scene(factory, rule, code).await;
    scene.batch([start("a")]).await;
    for batch in batches.into_iter().filter(|batch| !batch.is_empty()) {
        scene.batch(batch).await;
    }
    scene.send([signal("end", "")]).await;
    let outcome = scene.outcome("a").await;
    scene.lab.same("what came of the race", outcome, Ok(output.to_owned()));
    scene.replays(1, &format!("Completed({output:?})")).await;
}

/// Waits for a last signal, so that another runtime finds the race decided and must agree.
async fn end(ctx: OrchestrationContext, won: [String; 2]) -> Result<String, String> {
    ctx.schedule_wait("end").await;
    Ok(won.join(" "))
}

/// What won against a timer, in words.
fn winner(won: Either2<String, ()>) -> String {
    match won {
        Either2::First(text) => text,
        Either2::Second(()) => "timer".to_owned(),
    }
}
