//! What branches of one orchestration share (channels, locks, semaphores) works in live turns, in warm
//! ones and after a restart alike (R3.7, R3.130).

use std::sync::Arc;

use duroxide::providers::memory::MemoryProvider;
use duroxide::runtime::ForeignWait;
use duroxide::{Client, OrchestrationContext};
use tokio::sync::{Mutex, Notify, Semaphore, broadcast, mpsc, oneshot, watch};

use crate::support::look::has;
use crate::support::{WorldBuilder, world, world_on};

/// Runs code, restarts before it goes on, and lets it end. Its output.
async fn restarted<F, Fut>(part: F) -> String
where
    F: Fn(OrchestrationContext) -> Fut + Send + Sync + Clone + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    let cast = |world: WorldBuilder| {
        let part = part.clone();
        world
            .tuning(|tuning| tuning.foreign_wait = ForeignWait::Fail)
            .activity("A", |_, input| async move { Ok(input) })
            .orchestration("Main", move |ctx, _| {
                let part = part.clone();
                async move {
                    let output = part(ctx.clone()).await?;
                    ctx.schedule_wait("Go").await;
                    Ok(output)
                }
            })
    };
    let first = cast(world()).start().await;
    first.begin("i", "Main", "").await;
    first.until("i", |history| has(history, "ExternalSubscribed")).await;
    let memory = Arc::clone(&first.memory);
    first.finish().await;
    let second = cast(world_on(memory)).start().await;
    second.client.raise_event("i", "Go", "").await.unwrap();
    let output = second.output("i").await;
    second.finish().await;
    output
}

async fn work(ctx: &OrchestrationContext, n: usize) -> Result<usize, String> {
    let answer = ctx.schedule_activity("A", n.to_string()).await?;
    answer.parse().map_err(|error| format!("{error}"))
}

#[tokio::test]
async fn r3_130_channels() {
    let output = restarted(|ctx| async move {
        let (sender, mut receiver) = mpsc::channel(1);
        let producer = async {
            for n in 0..5 {
                sender.send(work(&ctx, n).await?).await.map_err(|error| error.to_string())?;
            }
            drop(sender);
            Ok::<_, String>(())
        };
        let consumer = async {
            let mut sum = 0;
            while let Some(n) = receiver.recv().await {
                sum += work(&ctx, 10 * n).await?;
            }
            Ok::<_, String>(sum)
        };
        let (sum, produced) = ctx.join2(consumer, producer).await;
        produced?;
        Ok(sum?.to_string())
    });
    assert_eq!(output.await, "100");
}

#[tokio::test]
async fn r3_130_one_who_tells_many() {
    let output = restarted(|ctx| async move {
        let (told, mut heard) = (watch::Sender::new(0), Vec::new());
        let (rings, notify) = (broadcast::Sender::new(8), Notify::new());
        let (answer, question) = oneshot::channel();
        let mut listeners: Vec<_> = (0..3).map(|_| (told.subscribe(), rings.subscribe())).collect();
        let listening = ctx.join(
            listeners
                .iter_mut()
                .map(|(told, rings)| async {
                    let n = *told.wait_for(|n| *n > 1).await.map_err(|error| error.to_string())?;
                    let ring = rings.recv().await.map_err(|error| error.to_string())?;
                    notify.notify_one();
                    work(&ctx, n + ring).await
                })
                .collect(),
        );
        let telling = async {
            for n in 1..4 {
                told.send_replace(work(&ctx, n).await?);
            }
            rings.send(work(&ctx, 40).await?).map_err(|error| error.to_string())?;
            notify.notified().await;
            answer.send("told").map_err(str::to_owned)
        };
        let (all, telling, question) = ctx.join3(listening, telling, question).await;
        telling?;
        for n in all {
            heard.push(n?);
        }
        Ok(format!("{heard:?} {}", question.map_err(|error| error.to_string())?))
    });
    assert_eq!(output.await, "[42, 42, 42] told");
}

#[tokio::test]
async fn r3_130_semaphores_and_locks() {
    let output = restarted(|ctx| async move {
        let (permits, most) = (Semaphore::new(3), Mutex::new((0, 0)));
        let branches = (0..200).map(|n| {
            let (ctx, permits, most) = (&ctx, &permits, &most);
            async move {
                let _permit = permits.acquire().await.map_err(|error| error.to_string())?;
                let mut counts = most.lock().await;
                counts.0 += 1;
                counts.1 = counts.1.max(counts.0);
                drop(counts);
                let n = work(ctx, n).await?;
                most.lock().await.0 -= 1;
                Ok::<_, String>(n)
            }
        });
        let all: Result<Vec<_>, _> = ctx.join(branches.collect()).await.into_iter().collect();
        Ok(format!("{} {}", all?.into_iter().sum::<usize>(), most.into_inner().1))
    });
    assert_eq!(output.await, format!("{} 3", 199 * 100));
}

#[tokio::test]
async fn r3_7_locks_in_one_turn_are_not_counted() {
    // All messages are there before the first turn. Tokio lets a task take some hundred in one go.
    let memory = Arc::new(MemoryProvider::new());
    let client = Client::new(memory.clone());
    client.start_orchestration("i", "Main", "").await.unwrap();
    for n in 0..300 {
        client.enqueue_event("i", "q", n.to_string()).await.unwrap();
    }
    let world = world_on(memory)
        .orchestration("Main", |ctx, _| async move {
            let total = Mutex::new(0);
            for _ in 0..300 {
                ctx.dequeue_event("q").await;
                *total.lock().await += 1;
            }
            Ok(total.into_inner().to_string())
        })
        .start()
        .await;
    assert_eq!(world.output("i").await, "300");
    world.finish().await;
}

/// tokio wakes those who wait for a `watch` at random; a join lets them go on in their order.
#[tokio::test]
async fn r3_130_whom_tokio_wakes_at_random() {
    let output = restarted(|ctx| async move {
        let (sender, receiver) = watch::channel(false);
        let branches = (0..8).map(|n| {
            let (ctx, sender, mut receiver) = (&ctx, &sender, receiver.clone());
            async move {
                if n == 7 {
                    work(ctx, n).await?;
                    sender.send_replace(true);
                } else {
                    receiver.wait_for(|is_open| *is_open).await.map_err(|e| e.to_string())?;
                }
                work(ctx, n).await
            }
        });
        let answers: Result<Vec<usize>, String> =
            ctx.join(branches.collect()).await.into_iter().collect();
        Ok(format!("{:?}", answers?))
    })
    .await;
    assert_eq!(output, "[0, 1, 2, 3, 4, 5, 6, 7]");
}
