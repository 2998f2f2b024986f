//! All or nothing without a transaction: when a step fails, the steps before it are undone, the
//! last one first.

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry};
use tokio::sync::Mutex;

/// Each step with what undoes it.
const STEPS: [(&str, &str); 3] =
    [("BookFlight", "CancelFlight"), ("BookHotel", "CancelHotel"), ("BookCar", "ReturnCar")];

async fn trip(ctx: OrchestrationContext, destination: String) -> Result<String, String> {
    let mut undo = Vec::new();
    for (step, compensation) in STEPS {
        match ctx.schedule_activity(step, destination.as_str()).await {
            Ok(_) => undo.push(compensation),
            Err(error) => {
                // A crash in here is no problem: what was undone is in history.
                for compensation in undo.into_iter().rev() {
                    ctx.schedule_activity(compensation, destination.as_str()).await?;
                }
                return Err(format!("no trip to {destination}: {error}"));
            }
        }
    }
    Ok(format!("off to {destination}"))
}

/// What the outside world saw.
type Diary = Arc<Mutex<Vec<String>>>;

fn activities(diary: &Diary) -> ActivityRegistry {
    let names = STEPS.into_iter().flat_map(|(step, compensation)| [step, compensation]);
    names
        .fold(ActivityRegistry::builder(), |registry, name| {
            let diary = Arc::clone(diary);
            registry.register(name, move |_ctx: ActivityContext, destination: String| {
                let diary = Arc::clone(&diary);
                async move {
                    if name == "BookCar" && destination == "Venice" {
                        return Err("no cars there".to_owned());
                    }
                    diary.lock().await.push(format!("{name} {destination}"));
                    Ok(String::new())
                }
            })
        })
        .build()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let diary = Diary::default();
    let orchestrations = OrchestrationRegistry::builder().register("Trip", trip).build();
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let runtime =
        Runtime::start_with_store(store.clone(), activities(&diary), orchestrations).await;
    let client = Client::new(store);

    let mut outcomes = Vec::new();
    for destination in ["Rome", "Venice"] {
        client.start_orchestration(destination, "Trip", destination).await?;
        let outcome: Result<String, String> =
            client.wait_for_orchestration_typed(destination, Duration::from_secs(5)).await?;
        println!("{outcome:?}: {:?}", diary.lock().await);
        outcomes.push((outcome, std::mem::take(&mut *diary.lock().await)));
    }

    let (rome, venice) = (&outcomes[0], &outcomes[1]);
    assert_eq!(rome.0, Ok("off to Rome".to_owned()));
    assert_eq!(rome.1, ["BookFlight Rome", "BookHotel Rome", "BookCar Rome"]);
    assert_eq!(venice.0, Err("no trip to Venice: no cars there".to_owned()));
    assert_eq!(
        venice.1,
        ["BookFlight Venice", "BookHotel Venice", "CancelHotel Venice", "CancelFlight Venice"]
    );
    runtime.shutdown(None).await;
    Ok(())
}
