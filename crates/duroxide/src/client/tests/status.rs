//! Reading the status, and the error texts.

use std::time::Duration;

use duroxide_core::model::OrchestrationStatus;
use duroxide_core::provider::ProviderError;

use super::fake::{Fake, completed, corrupt, failed, outage, running_at};
use crate::client::ClientError;

const SOON: Duration = Duration::from_secs(1);

#[tokio::test]
async fn r6_20_r6_21_the_status_is_what_the_store_says() {
    let answers = [Ok(OrchestrationStatus::NotFound), running_at(3), completed("7"), failed()];
    let (_, client) = Fake::new().with_statuses(answers.clone()).client();
    for expected in answers {
        assert_eq!(client.get_orchestration_status("a").await.unwrap(), expected.unwrap());
    }
}

#[tokio::test]
async fn r6_25_an_unreadable_status_is_a_provider_error() {
    for error in [outage(), corrupt()] {
        let (_, client) = Fake::new().with_statuses([Err(error.clone())]).client();
        match client.get_orchestration_status("a").await {
            Err(ClientError::Provider(found)) => assert_eq!(found, error),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn r6_31_a_typed_wait_decodes_or_tells_the_error() {
    let (_, client) = Fake::new().with_statuses([completed("42")]).client();
    assert_eq!(client.wait_for_orchestration_typed::<u32>("a", SOON).await.unwrap(), Ok(42));
    assert_eq!(
        client.wait_for_orchestration_typed::<String>("a", SOON).await.unwrap(),
        Ok("42".to_owned())
    );
    match client.wait_for_orchestration_typed::<Vec<u32>>("a", SOON).await {
        Err(ClientError::InvalidInput { message }) => {
            assert!(message.starts_with("decode failed: "), "{message}");
        }
        other => panic!("{other:?}"),
    }
    let (_, client) = Fake::new().with_statuses([failed()]).client();
    assert_eq!(
        client.wait_for_orchestration_typed::<u32>("a", SOON).await.unwrap(),
        Err("canceled: enough".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn r6_31_a_typed_wait_times_out_like_any_other() {
    let (_, client) = Fake::new().client();
    let answer = client.wait_for_orchestration_typed::<u32>("a", SOON).await;
    assert!(matches!(answer, Err(ClientError::Timeout)), "{answer:?}");
}

#[test]
fn chapter_6_1_texts_and_retryability() {
    let id = || "order-7".to_owned();
    let cases = [
        (ClientError::from(ProviderError::retryable("ack", "busy")), "ack: busy", true),
        (ClientError::from(ProviderError::permanent("ack", "gone")), "ack: gone", false),
        (ClientError::ManagementNotAvailable, "Management features not available - ", false),
        (ClientError::InvalidInput { message: "x".into() }, "Invalid input: x", false),
        (ClientError::Timeout, "Operation timed out", true),
        (
            ClientError::InstanceStillRunning { instance_id: id() },
            "Instance order-7 is still running. ",
            false,
        ),
        (
            ClientError::CannotDeleteSubOrchestration { instance_id: id() },
            "Cannot delete sub-orchestration order-7 directly. ",
            false,
        ),
        (ClientError::InstanceNotFound { instance_id: id() }, "Instance order-7 not found", false),
    ];
    for (error, text, retryable) in cases {
        assert!(error.to_string().starts_with(text), "{error}");
        assert_eq!(error.is_retryable(), retryable, "{error}");
    }
}
