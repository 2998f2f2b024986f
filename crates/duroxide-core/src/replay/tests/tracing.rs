//! Which execution runs, and what it logs (§4.1, §4.2).

use expect_test::expect;

use super::*;

#[test]
fn r4_1_r4_3_who_runs() {
    check(
        r#"
        exec 3
        1 started Name v2.1.0 in
        "#,
        "",
        |ctx, input| async move {
            assert!(!ctx.is_logging_enabled() && ctx.get_system_stats().is_none());
            let (name, version) = (ctx.orchestration_name(), ctx.orchestration_version());
            Ok(format!("{} {} {name} {version} {input}", ctx.instance_id(), ctx.execution_id()))
        },
        expect![[r#"
            completed "i 3 Name 2.1.0 in"
        "#]],
    );
}

#[test]
fn r4_5_r4_6_r4_7_levels_target_and_fields() {
    let case = || {
        check(
            r#"
            persisted 0
            1 started O v1.0.0 ""
            "#,
            "",
            |ctx, _| async move {
                ctx.trace_info("1");
                ctx.trace_warn("2");
                ctx.trace_error("3");
                ctx.trace_debug("4");
                ctx.trace("wArN", "5");
                ctx.trace("fatal", "6");
                Ok(String::new())
            },
            expect![[r#"
                completed ""
            "#]],
        );
    };
    expect![[r#"
        INFO duroxide::orchestration: 1 instance_id=i execution_id=1 orchestration_name=O orchestration_version=1.0.0
        WARN duroxide::orchestration: 2 instance_id=i execution_id=1 orchestration_name=O orchestration_version=1.0.0
        ERROR duroxide::orchestration: 3 instance_id=i execution_id=1 orchestration_name=O orchestration_version=1.0.0
        DEBUG duroxide::orchestration: 4 instance_id=i execution_id=1 orchestration_name=O orchestration_version=1.0.0
        WARN duroxide::orchestration: 5 instance_id=i execution_id=1 orchestration_name=O orchestration_version=1.0.0
        TRACE duroxide::orchestration: 6 instance_id=i execution_id=1 orchestration_name=O orchestration_version=1.0.0 level=fatal
    "#]].assert_eq(&logs::captured(case));
}

/// Says what it has got, while other work goes on.
async fn talks(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.trace_info("begins");
    let [a, b, c] = ["A", "B", "C"].map(|name| ctx.schedule_activity(name, ""));
    for (name, activity) in [("a", a), ("b", b), ("c", c)] {
        activity.await?;
        ctx.trace_info(format!("got {name}"));
    }
    Ok(String::new())
}

#[test]
fn r4_5_each_line_appears_once_over_all_turns() {
    let mut history = Vec::new();
    let turns = [
        "start O in",
        "activity-completed 2 a",
        "activity-completed 3 b",
        "activity-completed 4 c",
    ];
    let mut text = String::new();
    for messages in turns {
        let mut story = Story::read("");
        story.events = std::mem::take(&mut history);
        let mut events = Vec::new();
        let logs = logs::captured(|| {
            let turn = turn(&story, messages, code(talks));
            events = run_turn(turn).events;
        });
        history = story.events.into_iter().chain(events).collect();
        let said: Vec<_> = logs.lines().filter_map(|line| line.split(' ').nth(2)).collect();
        writeln!(text, "{messages}: {} lines {said:?}", logs.lines().count()).unwrap();
    }
    expect![[r#"
        start O in: 1 lines ["begins"]
        activity-completed 2 a: 1 lines ["got"]
        activity-completed 3 b: 1 lines ["got"]
        activity-completed 4 c: 1 lines ["got"]
    "#]]
    .assert_eq(&text);
}
