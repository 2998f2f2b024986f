//! Durable futures as plain futures: in tokio's macros, borrowed, boxed, stored, passed around
//! (R3.120 – R3.122).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::memory::MemoryProvider;
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, Client, DurableFuture, Either2, Either3, OrchestrationContext,
    OrchestrationRegistry,
};

type Text = Result<String, String>;

const LONG: Duration = Duration::from_secs(3600);

/// Runs an orchestration; activity `Echo` answers with its input.
async fn run<F, Fut>(orchestration: F) -> Text
where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Text> + Send + 'static,
{
    let store = Arc::new(MemoryProvider::new());
    let activities = ActivityRegistry::builder()
        .register("Echo", |_ctx: ActivityContext, input: String| async move { Ok(input) })
        .build();
    let orchestrations = OrchestrationRegistry::builder().register("O", orchestration).build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store);
    client.start_orchestration("i", "O", "in").await.unwrap();
    let patience = Duration::from_secs(20);
    let result = client.wait_for_orchestration_typed("i", patience).await.unwrap();
    runtime.shutdown(None).await;
    result
}

#[tokio::test]
async fn select_over_borrowed_futures() {
    let result = run(|ctx, _input| async move {
        let mut slow = ctx.schedule_timer(LONG);
        let mut first = ctx.schedule_activity("Echo", "first");
        let mut got = Vec::new();
        for round in 0..3 {
            let mut echo = ctx.schedule_activity("Echo", format!("{round}"));
            tokio::select! {
                biased;
                () = &mut slow => return Err("an hour passed".into()),
                text = &mut first, if got.is_empty() => got.push(text?),
                // Which of two activities ends first is up to the workers.
                text = &mut echo, if 0 < round => got.push(text?),
            }
        }
        Ok(got.join(","))
    })
    .await;
    assert_eq!(result, Ok("first,1,2".into()));
}

#[tokio::test]
async fn join_macros() {
    let result = run(|ctx, _input| async move {
        let echo = |text: &str| ctx.schedule_activity("Echo", text);
        let (a, b, ()) = tokio::join!(echo("a"), echo("b"), ctx.schedule_timer(Duration::ZERO));
        let (c, d) = tokio::try_join!(echo("c"), echo("d"))?;
        Ok([a?, b?, c, d].concat())
    })
    .await;
    assert_eq!(result, Ok("abcd".into()));
}

/// A helper that schedules and leaves the waiting to its caller.
fn echo(ctx: &OrchestrationContext, text: &str) -> DurableFuture<Text> {
    ctx.schedule_activity("Echo", text)
}

/// A helper that waits itself.
async fn echo_twice(ctx: &OrchestrationContext, text: &str) -> Text {
    let first = echo(ctx, text).await?;
    echo(ctx, &first).await
}

struct Pending {
    name: &'static str,
    future: DurableFuture<Text>,
}

#[tokio::test]
async fn stored_boxed_and_passed_around() {
    let result = run(|ctx, _input| async move {
        let pending = Pending { name: "stored", future: echo(&ctx, "1") };
        let boxed: Pin<Box<dyn Future<Output = Text> + Send>> = Box::pin(echo(&ctx, "2"));
        let mut optional = Some(echo(&ctx, "3"));
        let two = echo_twice(&ctx, "4").await?;
        let three = match optional.take() {
            Some(future) => future.await?,
            None => return Err("it was there".into()),
        };
        let Pending { name, mut future } = pending;
        let by_reference = Pin::new(&mut future).await?;
        Ok(format!("{name} {by_reference} {} {three} {two}", boxed.await?))
    })
    .await;
    assert_eq!(result, Ok("stored 1 2 3 4".into()));
}

#[tokio::test]
async fn context_combinators_take_any_future() {
    let result = run(|ctx, _input| async move {
        let plain: Vec<DurableFuture<Text>> =
            ["a", "b"].iter().map(|text| ctx.schedule_activity("Echo", *text)).collect();
        let plain: Result<Vec<String>, String> = ctx.join(plain).await.into_iter().collect();
        let boxed: Vec<Pin<Box<dyn Future<Output = usize> + Send + '_>>> = vec![
            Box::pin(async { echo_twice(&ctx, "long").await.map_or(0, |text| text.len()) }),
            Box::pin(ctx.schedule_timer(Duration::ZERO).map(|()| 1)),
        ];
        let lengths = ctx.join(boxed).await;
        let raced = ctx.select2(echo_twice(&ctx, "x"), ctx.schedule_timer(LONG)).await;
        let Either2::First(Ok(text)) = raced else { return Err(format!("{raced:?}")) };
        let mut event = ctx.schedule_wait("never");
        let third = ctx.select3(&mut event, std::future::pending::<()>(), echo(&ctx, "y")).await;
        let Either3::Third(Ok(third)) = third else { return Err(format!("{third:?}")) };
        let (l, r) = ctx.join2(async { 1 }, echo(&ctx, "z")).await;
        Ok(format!("{:?} {lengths:?} {text} {third} {l} {}", plain?, r?))
    })
    .await;
    assert_eq!(result, Ok(r#"["a", "b"] [4, 1] x y 1 z"#.into()));
}

#[tokio::test]
async fn map_keeps_the_operation() {
    let result = run(|ctx, _input| async move {
        let length: DurableFuture<Result<usize, String>> =
            ctx.schedule_activity("Echo", "four").map(|text| Ok(text?.len()));
        let shouted = ctx.schedule_activity("Echo", "x").map(|text| text.map(|t| t + "!"));
        Ok(format!("{} {}", length.await?, shouted.await?))
    })
    .await;
    assert_eq!(result, Ok("4 x!".into()));
}

#[tokio::test]
async fn futures_outlive_the_turn_in_other_containers() {
    let result = run(|ctx, _input| async move {
        let shared = Arc::new(ctx.clone());
        let mut queue: std::collections::VecDeque<_> =
            (0..3).map(|n| shared.schedule_activity("Echo", n.to_string())).collect();
        let mut all = String::new();
        while let Some(future) = queue.pop_front() {
            all += &future.await?;
        }
        drop(shared.schedule_activity("Echo", "given up"));
        let _ = shared.schedule_wait("given up, too");
        Ok(all)
    })
    .await;
    assert_eq!(result, Ok("012".into()));
}
