//! Custom status and key-value store (§4.11, §4.12).

use expect_test::expect;

use super::*;

#[test]
fn r4_71_r4_74_status_is_read_back_and_each_call_is_an_event() {
    check(
        r#"1 started O v1.0.0 "" status="carried""#,
        "",
        |ctx, _| async move {
            let mut seen = vec![ctx.get_custom_status()];
            ctx.set_custom_status("1");
            seen.push(ctx.get_custom_status());
            ctx.set_custom_status("2");
            ctx.reset_custom_status();
            seen.push(ctx.get_custom_status());
            Ok(format!("{seen:?}"))
        },
        expect![[r#"
            completed "[Some(\"carried\"), Some(\"1\"), None]"
              2 status "1"
              3 status "2"
              4 status-reset
            actions: status, status, status
        "#]],
    );
}

#[test]
fn r4_76_another_status_text_is_no_divergence() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 status "50 percent"
        3 wait Go
        "#,
        "",
        |ctx, _| async move {
            ctx.set_custom_status("50%");
            Ok(ctx.schedule_wait("Go").await)
        },
        expect![[r#"
            continue
        "#]],
    );
}

#[test]
fn r4_80_r4_81_r4_84_reads_see_the_snapshot_and_every_write() {
    check(
        r#"
        kv old "from before" @5
        kv gone "from before" @5
        1 started O v1.0.0 ""
        "#,
        "",
        |ctx, _| async move {
            ctx.set_kv_value("k", "1");
            ctx.set_kv_value("k", "2");
            ctx.set_kv_value_typed("list", &[1, 2]);
            ctx.set_kv_value_typed("text", &"quoted"); // R2.93
            ctx.clear_kv_value("gone");
            let list = ctx.get_kv_value_typed::<Vec<u8>>("list");
            let wrong = ctx.get_kv_value_typed::<u8>("list");
            let missing = ctx.get_kv_value_typed::<u8>("gone");
            let mut all: Vec<_> = ctx.get_kv_all_values().into_iter().collect();
            all.sort();
            let keys = (ctx.get_kv_all_keys(), ctx.get_kv_length());
            ctx.clear_all_kv_values();
            let after = (ctx.get_kv_value("old"), ctx.get_kv_length());
            Ok(format!("{list:?} {wrong:?} {missing:?}\n{all:?}\n{keys:?} {after:?}"))
        },
        expect![[r#"
            completed "Ok(Some([1, 2])) Err(\"KV deserialization error for key 'list': invalid type: sequence, expected u8 at line 1 column 0\") Ok(None)\n[(\"k\", \"2\"), (\"list\", \"[1,2]\"), (\"old\", \"from before\"), (\"text\", \"\\\"quoted\\\"\")]\n([\"k\", \"list\", \"old\", \"text\"], 4) (None, 0)"
              2 set k "1" 0s
              3 set k "2" 0s
              4 set list "[1,2]" 0s
              5 set text "\"quoted\"" 0s
              6 clear gone
              7 clear-all
            actions: set k, set k, set list, set text, clear gone, clear-all
        "#]],
    );
}

#[test]
fn r4_82_r4_83_the_writes_of_this_execution_come_from_its_code() {
    // A counter: the snapshot stays that of completed executions, turn after turn.
    let counts = |ctx: OrchestrationContext, _| async move {
        for _ in 0..2 {
            let count: u32 = ctx.get_kv_value("n").and_then(|n| n.parse().ok()).unwrap_or(0);
            ctx.set_kv_value("n", (count + 1).to_string());
            ctx.schedule_activity("A", "").await?;
        }
        Ok(ctx.get_kv_value("n").unwrap_or_default())
    };
    check(
        r#"
        kv n 7 @5
        1 started O v1.0.0 ""
        2 set n 8 0s
        3 activity A ""
        "#,
        "activity-completed 3 a",
        counts,
        expect![[r#"
            continue
              4 activity-completed 3 "a"
              5 set n "9" 0s
              6 activity A ""
            actions: set n, activity 6
        "#]],
    );
    check(
        r#"
        kv n 8 0s
        1 started O v1.0.0 ""
        2 set n 8 0s
        3 activity A ""
        "#,
        "activity-completed 3 a",
        counts,
        expect![[r#"
            failed nondeterminism: kv set mismatch: action=SetKeyValue { key: "n", value: "9", last_updated_at_ms: 1000000 } vs event=KeyValueSet { key: "n", value: "8", last_updated_at_ms: 1000000 }
              4 activity-completed 3 "a"
        "#]],
    );
}

#[test]
fn r4_89_a_write_carries_the_time_of_its_turn() {
    check(
        r#"
        now 9s
        1 started O v1.0.0 ""
        "#,
        "",
        |ctx, _| async move {
            ctx.set_kv_value("k", "v");
            Ok(ctx.schedule_wait("Go").await)
        },
        expect![[r#"
            continue
              2 set k "v" 9s
              3 wait Go
            actions: set k, wait 3
        "#]],
    );
}

#[test]
fn r4_90_prune_removes_what_is_strictly_older_in_key_order() {
    check(
        r#"
        kv b old @5
        kv a old @5
        kv exact boundary @10
        1 started O v1.0.0 ""
        "#,
        "",
        |ctx, _| async move {
            let none = ctx.prune_kv_values_updated_before(0);
            ctx.set_kv_value("new", "v");
            let old = ctx.prune_kv_values_updated_before(10);
            let all = ctx.prune_kv_values_updated_before(u64::MAX);
            let empty = ctx.prune_kv_values_updated_before(u64::MAX);
            Ok(format!("{none} {old} {all} {empty}"))
        },
        expect![[r#"
            completed "0 2 2 0"
              2 set new "v" 0s
              3 clear a
              4 clear b
              5 clear exact
              6 clear new
            actions: set new, clear a, clear b, clear exact, clear new
        "#]],
    );
}

/// Writes, lets time pass, writes again, prunes what is older than now, and goes on.
async fn prunes(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.set_kv_value("early", "v");
    ctx.set_kv_value("twice", "v");
    ctx.schedule_activity("A", "").await?;
    ctx.set_kv_value("twice", "w");
    ctx.set_kv_value("late", "v");
    let now = ctx.utc_now().await?.duration_since(std::time::UNIX_EPOCH).unwrap();
    let pruned = ctx.prune_kv_values_updated_before(now.as_millis() as u64);
    ctx.schedule_activity(format!("pruned {pruned}: {:?}", ctx.get_kv_all_keys()), "").await
}

#[test]
fn l9_r4_89_r4_91_age_is_what_was_recorded() {
    check(
        r#"
        now 60s
        system-calls
        1 started O v1.0.0 ""
        2 set early v 0s
        3 set twice v 0s
        4 activity A ""
        "#,
        "activity-completed 4 a",
        prunes,
        expect![[r#"
            continue
              5 activity-completed 4 "a"
              6 set twice "w" 60s
              7 set late "v" 60s
              8 activity __duroxide_syscall:utc_now_ms ""
              9 activity-completed 8 "1060000"
              10 clear early
              11 activity pruned 1: ["late", "twice"] ""
            actions: set twice, set late, clear early, activity 11
        "#]],
    );
}

#[test]
fn l9_r4_91_older_executions_take_a_new_stamp_on_every_replay_as_when_they_were_recorded() {
    // Their histories say that nothing was pruned; today it must not be pruned either.
    check(
        r#"
        now 90s
        stamp 0.1.32
        1 started O v1.0.0 ""
        2 set early v 0s
        3 set twice v 0s
        4 activity A ""
        5 activity-completed 4 "a"
        6 set twice w 60s
        7 set late v 60s
        8 activity __duroxide_syscall:utc_now_ms ""
        9 activity-completed 8 "1060000"
        10 activity "pruned 0: [\"early\", \"late\", \"twice\"]" ""
        "#,
        "",
        prunes,
        expect![[r#"
            continue
        "#]],
    );
}

#[test]
fn l9_r3_50_r4_89_a_recorded_write_that_the_code_no_longer_makes_lends_its_age_to_none() {
    check(
        r#"
        now 60s
        1 started O v1.0.0 ""
        2 activity A ""
        3 set k v 0s
        "#,
        "activity-completed 2 a",
        |ctx, _| async move {
            ctx.schedule_activity("A", "").await?;
            ctx.set_kv_value("k", "v");
            Ok(ctx.schedule_wait("Go").await)
        },
        expect![[r#"
            continue
              4 activity-completed 2 "a"
              5 set k "v" 60s
              6 wait Go
            actions: set k, wait 6
        "#]],
    );
}

#[test]
fn r4_92_a_value_of_another_instance() {
    let reads = |ctx: OrchestrationContext, _| async move {
        let value = ctx.get_kv_value_from_instance("other", "k");
        let missing = ctx.get_kv_value_from_instance("other", "l");
        let typed = ctx.get_kv_value_from_instance_typed::<Vec<u8>>("other", "m");
        Ok(format!("{:?}", ctx.join3(value, missing, typed).await))
    };
    let history = r#"
        1 started O v1.0.0 ""
        2 activity __duroxide_syscall:get_kv_value "{\"instance_id\":\"other\",\"key\":\"k\"}"
        3 activity __duroxide_syscall:get_kv_value "{\"instance_id\":\"other\",\"key\":\"l\"}"
        4 activity __duroxide_syscall:get_kv_value "{\"instance_id\":\"other\",\"key\":\"m\"}"
    "#;
    check(
        history,
        r#"
        activity-completed 2 "\"v\""
        activity-completed 3 "null"
        activity-completed 4 "\"[1]\""
        "#,
        reads,
        expect![[r#"
            completed "(Ok(Some(\"v\")), Ok(None), Ok(Some([1])))"
              5 activity-completed 2 "\"v\""
              6 activity-completed 3 "null"
              7 activity-completed 4 "\"[1]\""
        "#]],
    );
    check(
        history,
        r#"
        activity-failed 2 "boom"
        activity-completed 3 "garbage"
        activity-completed 4 "\"no list\""
        "#,
        reads,
        expect![[r#"
            completed "(Err(\"boom\"), Err(\"KV read result: expected value at line 1 column 1\"), Err(\"KV deserialization error for key 'm': expected ident at line 1 column 2\"))"
              5 activity-failed 2 activity error: boom
              6 activity-completed 3 "garbage"
              7 activity-completed 4 "\"no list\""
        "#]],
    );
}
