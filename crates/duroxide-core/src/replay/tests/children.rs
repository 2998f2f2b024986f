//! Children and detached orchestrations (§4.8, §4.9).

use expect_test::expect;

use super::*;

const STARTED: &str = r#"1 started O v1.0.0 """#;

#[test]
fn r4_50_r4_51_r4_52_r4_54_every_way_to_start_a_child() {
    check_turn(
        STARTED,
        "",
        |ctx, _| async move {
            let version = Some("2.0.0".to_owned());
            let texts = vec![
                ctx.schedule_sub_orchestration("C", "auto"),
                ctx.schedule_sub_orchestration_with_id("C", "mine", "id"),
                ctx.schedule_sub_orchestration_versioned("C", version.clone(), "version"),
                ctx.schedule_sub_orchestration_versioned("C", None, "no version"),
                ctx.schedule_sub_orchestration_versioned_with_id("C", version, "x::sub::1", "both"),
            ];
            let typed = ctx.schedule_sub_orchestration_typed::<_, u32>("C", &[1]);
            let with_id = ctx.schedule_sub_orchestration_with_id_typed::<_, u32>("C", "t", &[2]);
            let _ = ctx.join3(ctx.join(texts), typed, with_id).await;
            Ok(String::new())
        },
        expect![[r#"
            running
              2 child C sub::2 "auto"
              3 child C mine "id"
              4 child C sub::4 "version"
              5 child C sub::5 "no version"
              6 child C x::sub::1 "both"
              7 child C sub::7 "[1]"
              8 child C t "[2]"
            orch: start i::sub::2 C "auto" parent=i/1/2
            orch: start mine C "id" parent=i/1/3
            orch: start i::sub::4 C "version" version="2.0.0" parent=i/1/4
            orch: start i::sub::5 C "no version" parent=i/1/5
            orch: start x::sub::1 C "both" version="2.0.0" parent=i/1/6
            orch: start i::sub::7 C "[1]" parent=i/1/7
            orch: start t C "[2]" parent=i/1/8
        "#]],
    );
}

#[test]
fn r4_53_r2_104_a_reserved_child_id_is_refused_at_once() {
    check(
        STARTED,
        "",
        |ctx, _| async move {
            let refused = ctx.schedule_sub_orchestration_with_id("C", "sub::pending_1", "");
            let Err(error) = refused.await else { return Ok("scheduled".to_owned()) };
            Ok(error)
        },
        expect![[r#"
            completed "sub-orchestration instance id 'sub::pending_1' uses the reserved marker 'sub::'"
        "#]],
    );
}

#[test]
fn r4_55_r4_60_results_of_children() {
    let history = r#"
        1 started O v1.0.0 ""
        2 child C sub::2 ""
        3 child C sub::3 ""
        4 child C sub::4 "[1]"
    "#;
    let code = |ctx: OrchestrationContext, _| async move {
        let texts = ["", ""].map(|input| ctx.schedule_sub_orchestration("C", input));
        let typed = ctx.schedule_sub_orchestration_typed::<_, u32>("C", &[1]);
        let (texts, typed) = ctx.join2(ctx.join(texts.into()), typed).await;
        Ok(format!("{texts:?} {typed:?}"))
    };
    check(
        history,
        r#"
        child-completed 2 "out"
        child-failed 3 cancelled "enough"
        child-completed 4 "7"
        "#,
        code,
        expect![[r#"
            completed "[Ok(\"out\"), Err(\"canceled: enough\")] Ok(7)"
              5 child-completed 2 "out"
              6 child-failed 3 canceled: enough
              7 child-completed 4 "7"
        "#]],
    );
    check(
        history,
        r#"child-failed 2 infrastructure "db" "down""#,
        code,
        expect![[r#"
            failed infrastructure db: down
              5 child-failed 2 infrastructure db: down
        "#]],
    );
}

#[test]
fn r4_56_a_child_that_continues_tells_its_parent_at_its_end() {
    check_turn(
        r#"
        exec 2
        1 started O v1.0.0 "" parent=p parent-id=5 parent-exec=3
        "#,
        "",
        |_, _| async { Ok("out".to_owned()) },
        expect![[r#"
            ended: completed
              2 completed "out"
            orch: child-completed p/3/5 "out"
        "#]],
    );
}

#[test]
fn r4_58_r2_101_children_of_later_executions_get_new_ids() {
    check(
        r#"
        exec 2
        1 started O v1.0.0 ""
        "#,
        "",
        |ctx, _| async move { ctx.schedule_sub_orchestration("C", "").await },
        expect![[r#"
            continue
              2 child C sub::2_2 ""
            actions: child 2 sub::2_2
        "#]],
    );
}

#[test]
fn r4_61_every_way_to_start_something_detached() {
    check_turn(
        STARTED,
        "",
        |ctx, _| async move {
            let version = Some("2.0.0".to_owned());
            ctx.schedule_orchestration("D", "a", "text");
            ctx.schedule_orchestration_typed("D", "b", &[1]);
            ctx.schedule_orchestration_versioned("D", version.clone(), "c", "text");
            ctx.schedule_orchestration_versioned_typed("D", version, "d", &[1]);
            Ok(ctx.schedule_wait("Go").await)
        },
        expect![[r#"
            running
              2 detached D a "text"
              3 detached D b "[1]"
              4 detached D c "text"
              5 detached D d "[1]"
              6 wait Go
            orch: start a D "text"
            orch: start b D "[1]"
            orch: start c D "text" version="2.0.0"
            orch: start d D "[1]" version="2.0.0"
        "#]],
    );
}

#[test]
fn r4_62_r2_104_a_reserved_root_id_panics() {
    check(
        STARTED,
        "",
        |ctx, _| async move {
            ctx.schedule_orchestration("D", "x::sub::1", "");
            Ok(String::new())
        },
        expect![[r#"
            failed panic: instance id 'x::sub::1' uses the reserved sub-orchestration marker 'sub::'
        "#]],
    );
}
