//! Order processing that outlives its worker.
//!
//! Charge the customer (with retries), wait for the warehouse, ask a person to approve large orders,
//! ship through a child orchestration; if shipping fails, refund. In the middle of it the worker is
//! stopped by force and another one takes over. Activities write down each time they really run, so
//! at the end we can see what was replayed and what ran once.
//!
//! Run it with `./demo`.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use duroxide::providers::Provider;
use duroxide::providers::memory::MemoryProvider;
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, BackoffStrategy, Client, Either2, OrchestrationContext, OrchestrationRegistry,
    OrchestrationStatus, RetryPolicy, RuntimeOptions,
};

type Failure = Box<dyn std::error::Error>;

/// What really happened, outside of any history.
#[derive(Clone, Default)]
struct Ledger(Arc<Mutex<Vec<String>>>);

impl Ledger {
    fn write(&self, line: impl Into<String>) {
        let line = line.into();
        say("ran", &line);
        self.0.lock().unwrap_or_else(|e| e.into_inner()).push(line);
    }

    fn count(&self, line: &str) -> usize {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).iter().filter(|l| *l == line).count()
    }
}

async fn process_order(ctx: OrchestrationContext, order: String) -> Result<String, String> {
    step(&ctx, "charging, with retries");
    let patience = RetryPolicy::new(5)
        .with_backoff(BackoffStrategy::Fixed { delay: Duration::from_millis(50) });
    let receipt = ctx.schedule_activity_with_retry("Charge", order.clone(), patience).await?;

    step(&ctx, "giving the warehouse a moment");
    ctx.schedule_timer(Duration::from_millis(200)).await;

    step(&ctx, "waiting for approval, at most an hour");
    let approval = ctx.schedule_wait("Approved");
    let deadline = ctx.schedule_timer(Duration::from_secs(3600));
    let Either2::First(by) = ctx.select2(approval, deadline).await else {
        return Err("nobody approved".to_owned());
    };

    step(&ctx, "shipping through a child orchestration");
    match ctx.schedule_sub_orchestration("Ship", order.clone()).await {
        Ok(parcel) => Ok(format!("{order}: {receipt}, approved by {by}, {parcel}")),
        Err(why) => {
            step(&ctx, "shipping failed, compensating");
            let refund = ctx.schedule_activity("Refund", order.clone()).await?;
            Ok(format!("{order}: {refund} because {why}"))
        }
    }
}

async fn ship(ctx: OrchestrationContext, order: String) -> Result<String, String> {
    ctx.schedule_activity("Pack", order).await
}

/// Says where the code is, and whether it has been there before.
fn step(ctx: &OrchestrationContext, what: &str) {
    let how = if ctx.is_replaying() { "replay" } else { "code" };
    say(how, &format!("{}: {what}", ctx.instance_id()));
}

fn say(how: &str, what: &str) {
    let colour = match how {
        "ran" => "32",
        "replay" => "90",
        "code" => "36",
        _ => "1",
    };
    if std::io::stdout().is_terminal() {
        println!("\x1b[{colour}m{how:>8}\x1b[0m  {what}");
    } else {
        println!("{how:>8}  {what}");
    }
}

async fn worker(store: Arc<dyn Provider>, ledger: Ledger) -> Arc<Runtime> {
    let (charging, packing, refunding) = (ledger.clone(), ledger.clone(), ledger);
    let activities = ActivityRegistry::builder()
        .register("Charge", move |_: ActivityContext, order: String| {
            let ledger = charging.clone();
            async move {
                ledger.write(format!("Charge {order}"));
                // The bank is out for coffee the first time it is asked.
                if ledger.count(&format!("Charge {order}")) < 2 {
                    return Err("bank not available".to_owned());
                }
                Ok("charged".to_owned())
            }
        })
        .register("Pack", move |_: ActivityContext, order: String| {
            let ledger = packing.clone();
            async move {
                ledger.write(format!("Pack {order}"));
                if order == "vase" {
                    Err("it broke".to_owned())
                } else {
                    Ok("parcel sent".to_owned())
                }
            }
        })
        .register("Refund", move |_: ActivityContext, order: String| {
            let ledger = refunding.clone();
            async move {
                ledger.write(format!("Refund {order}"));
                Ok("refunded".to_owned())
            }
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("ProcessOrder", process_order)
        .register("Ship", ship)
        .build();
    // Short locks: what the stopped worker held is free again after a second.
    let options = RuntimeOptions {
        orchestrator_lock_timeout: Duration::from_secs(1),
        worker_lock_timeout: Duration::from_secs(1),
        worker_lock_renewal_buffer: Duration::from_millis(500),
        ..RuntimeOptions::default()
    };
    Runtime::start_with_options(store, activities, orchestrations, options).await
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let ledger = Ledger::default();
    let client = Client::new(store.clone());

    say("demo", "a worker starts; two orders come in");
    let first = worker(store.clone(), ledger.clone()).await;
    for order in ["book", "vase"] {
        client.start_orchestration(order, "ProcessOrder", order).await?;
    }
    until_waiting_for_approval(&client, &["book", "vase"]).await?;

    say("demo", "the worker is stopped by force; nothing of the orders is left in memory");
    first.shutdown(Some(0)).await;
    for order in ["book", "vase"] {
        client.raise_event(order, "Approved", "Ada").await?;
    }

    say("demo", "another worker starts on the same store");
    let second = worker(store, ledger.clone()).await;
    let mut results = BTreeMap::new();
    for order in ["book", "vase"] {
        let status = client.wait_for_orchestration(order, Duration::from_secs(10)).await?;
        let OrchestrationStatus::Completed { output, .. } = status else {
            return Err(format!("{order}: {status:?}").into());
        };
        say("result", &output);
        results.insert(order, output);
    }
    second.shutdown(None).await;
    check(&results, &ledger)
}

/// Waits until both orders have asked for approval.
async fn until_waiting_for_approval(client: &Client, orders: &[&str]) -> Result<(), Failure> {
    for order in orders {
        loop {
            let history = client.read_execution_history(order, 1).await?;
            if history
                .iter()
                .any(|event| format!("{:?}", event.kind).contains("ExternalSubscribed"))
            {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    Ok(())
}

fn check(results: &BTreeMap<&str, String>, ledger: &Ledger) -> Result<(), Failure> {
    let expected = [
        ("book", "book: charged, approved by Ada, parcel sent"),
        ("vase", "vase: refunded because it broke"),
    ];
    for (order, output) in expected {
        if results.get(order).map(String::as_str) != Some(output) {
            return Err(
                format!("{order}: expected {output:?}, got {:?}", results.get(order)).into()
            );
        }
    }
    // One refusal by the bank, then one charge; everything else once.
    for (line, times) in [
        ("Charge book", 2),
        ("Charge vase", 2),
        ("Pack book", 1),
        ("Pack vase", 1),
        ("Refund vase", 1),
    ] {
        if ledger.count(line) != times {
            return Err(format!("{line} ran {} times, not {times}", ledger.count(line)).into());
        }
    }
    say("demo", "every step counted once, whatever was replayed");
    Ok(())
}
