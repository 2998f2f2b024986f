//! Second-generation waits by name and topic (R2.60).

use expect_test::expect;

use super::*;

async fn two_topics(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let (red, blue, old) = (
        ctx.schedule_wait2("Go", "red"),
        ctx.schedule_wait2("Go", "blue"),
        ctx.schedule_wait("Go"),
    );
    Ok(format!("{:?}", ctx.join3(red, blue, old).await))
}

const OPEN: &str = r#"
    1 started O v1.0.0 ""
    2 wait2 Go red
    3 wait2 Go blue
    4 wait Go
"#;

#[test]
fn r2_60_waits_are_recorded_with_their_topic() {
    check(
        r#"1 started O v1.0.0 """#,
        "",
        two_topics,
        expect![[r#"
            continue
              2 ExternalSubscribed2 { name: "Go", topic: "red" }
              3 ExternalSubscribed2 { name: "Go", topic: "blue" }
              4 wait Go
            actions: wait2 2, wait2 3, wait 4
        "#]],
    );
    check_turn(
        OPEN,
        "",
        two_topics,
        expect![[r#"
            running
        "#]],
    );
}

#[test]
fn r2_60_events_match_name_and_topic() {
    check(
        OPEN,
        r#"
        raised2 Go blue "b"
        raised Go "old"
        raised2 Go red "r"
        "#,
        two_topics,
        expect![[r#"
            completed "(\"r\", \"b\", \"old\")"
              5 ExternalEvent2 { name: "Go", topic: "blue", data: "b" }
              6 raised Go "old"
              7 ExternalEvent2 { name: "Go", topic: "red", data: "r" }
        "#]],
    );
}

#[test]
fn r2_60_an_event_without_a_recorded_wait_is_dropped() {
    let case = || {
        check(
            OPEN,
            r#"
            raised2 Go green "g"
            raised2 Stop red "s"
            "#,
            two_topics,
            expect![[r#"
                continue
            "#]],
        );
    };
    expect![[r#"
        WARN duroxide::runtime: event without a subscription dropped instance=i name=Go topic=green
        WARN duroxide::runtime: event without a subscription dropped instance=i name=Stop topic=red
    "#]]
    .assert_eq(&logs::captured(case));
}

#[test]
fn r2_60_arrivals_match_by_raw_index_whatever_was_dropped() {
    // The first wait is given up; its arrival stays its own.
    check(
        r#"
        1 started O v1.0.0 ""
        2 wait2 Go red
        3 wait2 Go red
        "#,
        r#"
        raised2 Go red "for the first"
        raised2 Go red "for the second"
        "#,
        |ctx, _| async move {
            drop(ctx.schedule_wait2("Go", "red"));
            Ok(ctx.schedule_wait2("Go", "red").await)
        },
        expect![[r#"
            completed "for the second"
              4 ExternalEvent2 { name: "Go", topic: "red", data: "for the first" }
              5 ExternalEvent2 { name: "Go", topic: "red", data: "for the second" }
        "#]],
    );
}

#[test]
fn r2_60_a_mismatch_is_told_like_any_other() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 wait2 Go green
        "#,
        "",
        two_topics,
        expect![[r#"
            failed nondeterminism: schedule mismatch: action=WaitExternal2 { scheduling_event_id: 0, name: "Go", topic: "red" } vs event=ExternalSubscribed2 { name: "Go", topic: "green" }
        "#]],
    );
}

#[test]
fn r2_60_an_arrival_may_wait_for_its_wait() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 wait2 Go red
        "#,
        r#"
        raised2 Go red "for the first"
        raised2 Go red "for the second"
        "#,
        |ctx, _| async move {
            ctx.schedule_wait2("Go", "red").await;
            let second = ctx.schedule_wait2("Go", "red").await;
            ctx.schedule_activity(second, "").await
        },
        expect![[r#"
            continue
              3 ExternalEvent2 { name: "Go", topic: "red", data: "for the first" }
              4 ExternalEvent2 { name: "Go", topic: "red", data: "for the second" }
              5 ExternalSubscribed2 { name: "Go", topic: "red" }
              6 activity for the second ""
            actions: wait2 5, activity 6
        "#]],
    );
}
