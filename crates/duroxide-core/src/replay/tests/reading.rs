//! Reading a batch and a history (§1.5, §12.2), the first turn (R1.30).

use expect_test::expect;

use super::*;
use crate::model::ScheduledActivityIdentifier;

fn reader(history: &str, messages: &str) -> WorkItemReader {
    let manager = HistoryManager::from_history(&Story::read(history).events);
    WorkItemReader::from_messages(&notation::messages(messages, 1), &manager, INSTANCE)
}

/// What a batch reads as, one fact per line.
fn facts(reader: &WorkItemReader) -> String {
    let mut text = String::new();
    writeln!(text, "start: {:?}", reader.start_item.as_ref().map(crate::model::kind_of)).unwrap();
    writeln!(text, "{:?} {:?} {:?}", reader.orchestration_name, reader.input, reader.version)
        .unwrap();
    let parent = (&reader.parent_instance, reader.parent_id, reader.parent_execution_id);
    writeln!(text, "parent {parent:?}, continues: {}", reader.is_continue_as_new).unwrap();
    for message in &reader.completion_messages {
        writeln!(text, "  {}", notation::work_item(message)).unwrap();
    }
    text
}

const RUNNING: &str = r#"
    1 started O v2.0.0 "in" parent=p parent-id=5 parent-exec=3
"#;

#[test]
fn r1_50_r1_52_r1_53_r12_3_the_first_start_counts_the_rest_is_taken_in_order() {
    let messages = r#"
        queue q "1"
        start O "first" version=1.0.0 parent=p parent-id=5 parent-exec=3
        run 2 A "no business here"
        queue q "2"
        start O "second"
        continue O "third" carry=q:x
    "#;
    let mut text = String::new();
    let logs = logs::captured(|| text = facts(&reader("", messages)));
    expect![[r#"
        start: Some("StartOrchestration")
        "O" "first" Some("1.0.0")
        parent (Some("p"), Some(5), Some(3)), continues: false
          queue q "1"
          queue q "2"
    "#]]
    .assert_eq(&text);
    expect![[r#"
        WARN duroxide::runtime: ActivityExecute ignored: it belongs in the worker queue instance=i
        WARN duroxide::runtime: StartOrchestration ignored: another start came first instance=i
        WARN duroxide::runtime: ContinueAsNew ignored: another start came first instance=i
    "#]]
    .assert_eq(&logs);
}

#[test]
fn r1_51_a_start_never_replaces_what_is_there() {
    let text = facts(&reader(RUNNING, "start Other again\nqueue q m"));
    expect![[r#"
        start: None
        "O" "in" Some("2.0.0")
        parent (Some("p"), Some(5), Some(3)), continues: false
          queue q "m"
    "#]]
    .assert_eq(&text);
    let ended = format!("{RUNNING}\n2 continued next");
    let text = facts(&reader(&ended, "start Other again\ncontinue O next\nstart Other again"));
    expect![[r#"
        start: Some("ContinueAsNew")
        "O" "next" None
        parent (None, None, None), continues: true
    "#]]
    .assert_eq(&text);
}

#[test]
fn r1_54_carried_messages_come_first() {
    let ended = format!("{RUNNING}\n2 continued next");
    let messages = "queue q new\ncontinue O next carry=q:1 carry=r:2 parent=p parent-id=5";
    expect![[r#"
        start: Some("ContinueAsNew")
        "O" "next" None
        parent (Some("p"), Some(5), None), continues: true
          queue q "1"
          queue r "2"
          queue q "new"
    "#]]
    .assert_eq(&facts(&reader(&ended, messages)));
}

#[test]
fn r1_55_without_a_start_history_tells() {
    expect![[r#"
        start: None
        "O" "in" Some("2.0.0")
        parent (Some("p"), Some(5), Some(3)), continues: false
          queue q "m"
    "#]]
    .assert_eq(&facts(&reader(RUNNING, "queue q m")));
    let unversioned = r#"1 started O v0.0.0 "in""#;
    assert_eq!(reader(unversioned, "").version, None);
    assert!(reader(RUNNING, "").has_orchestration_name() && !reader(RUNNING, "").has_start_item());
    assert!(!reader("", "queue q m").has_orchestration_name());
}

#[test]
fn r1_56_the_input_is_that_of_the_start_event() {
    check_turn(
        r#"1 started O v1.0.0 "recorded""#,
        "start O \"of the message\"",
        |_, input| async move { Ok(input) },
        expect![[r#"
            ended: completed
              2 completed "recorded"
        "#]],
    );
}

#[test]
fn r1_57_a_successor_has_only_the_parent_its_message_names() {
    let ended = format!("{RUNNING}\n2 continued next");
    check_turn(
        &ended,
        "continue O next",
        |_, _| async { Ok("out".to_owned()) },
        expect![[r#"
            ended: completed
              1 started O v1.0.0 "next"
              2 completed "out"
        "#]],
    );
}

#[test]
fn r1_30_r1_31_r2_10_r2_20_the_first_turn_makes_the_start_event() {
    check_turn(
        "",
        r#"
        queue q "m"
        start O "in" version=3.0.0 parent=p parent-id=5 parent-exec=2
        "#,
        |ctx, _| async move { Ok(ctx.schedule_wait("Go").await) },
        expect![[r#"
            running
              1 started O v3.0.0 "in" parent=p/2/5
              2 queue q "m"
              3 wait Go
        "#]],
    );
}

#[test]
fn r12_1_a_history_manager_knows_the_last_start() {
    let facts = |history: &str| {
        let m = HistoryManager::from_history(&Story::read(history).events);
        let parent = (m.parent_instance.clone(), m.parent_id, m.parent_execution_id);
        format!(
            "{:?} {:?} {:?} {parent:?} {:?} {} terminal={}",
            m.orchestration_name,
            m.orchestration_version,
            m.orchestration_input,
            m.current_execution_id,
            m.status(),
            m.is_terminal()
        )
    };
    let text = [
        facts(""),
        facts(RUNNING),
        facts(&format!("{RUNNING}\n2 completed out\n3 failed boom")),
        facts(&format!("{RUNNING}\n2 failed boom")),
        facts(&format!("{RUNNING}\n2 continued next")),
        facts(&format!("{RUNNING}\n2 continued next\n1 started O v3.0.0 next")),
    ];
    expect![[r#"
        None None None (None, None, None) None Running terminal=false
        Some("O") Some("2.0.0") Some("in") (Some("p"), Some(5), Some(3)) Some(1) Running terminal=false
        Some("O") Some("2.0.0") Some("in") (Some("p"), Some(5), Some(3)) Some(1) Completed terminal=true
        Some("O") Some("2.0.0") Some("in") (Some("p"), Some(5), Some(3)) Some(1) Failed terminal=true
        Some("O") Some("2.0.0") Some("in") (Some("p"), Some(5), Some(3)) Some(1) ContinuedAsNew terminal=true
        Some("O") Some("3.0.0") Some("next") (None, None, None) Some(2) Running terminal=false
    "#]].assert_eq(&text.map(|line| line + "\n").concat());
}

#[test]
fn r12_2_a_history_manager_appends() {
    let story = Story::read(
        r#"
        1 started O v0.0.0 "in" parent=p parent-id=5
        2 activity A ""
        3 activity B ""
        4 activity C ""
        9 activity-completed 2 "a"
    "#,
    );
    let mut manager = HistoryManager::from_history(&story.events);
    assert!(!manager.is_empty() && manager.original_len() == 5 && manager.input() == Some("in"));
    assert_eq!((manager.version(), manager.next_event_id()), (None, 10));
    assert_eq!(manager.extract_context(), ("in".into(), Some(("p".into(), None, 5))));
    let cancelled = Story::read("10 activity-cancelled 3 why").events;
    manager.extend(cancelled.clone());
    manager.append_failed(INSTANCE, 1, ErrorDetails::nondeterminism("x"));
    assert_eq!(manager.next_event_id(), 12);
    assert_eq!((manager.full_history_len(), manager.delta().len()), (7, 2));
    assert_eq!(manager.delta()[1].event_id, 11);
    assert_eq!(manager.full_history(), manager.full_history_iter().cloned().collect::<Vec<_>>());
    let open = |activity_id| ScheduledActivityIdentifier {
        instance: "i".into(),
        execution_id: 1,
        activity_id,
    };
    assert_eq!(manager.compute_inflight_activities("i", 1), [open(4)]);
    assert_eq!(manager.clone().into_delta().len(), 2);
    assert_eq!(manager.history(), manager.clone().into_history());
}

#[test]
fn r12_2_version_and_context_of_a_start_that_is_new() {
    let mut manager = HistoryManager::from_history(&[]);
    assert!(manager.is_empty() && manager.is_full_history_empty());
    assert_eq!((manager.next_event_id(), manager.extract_context()), (1, Default::default()));
    manager.append(Story::read(RUNNING).events.remove(0));
    assert_eq!(manager.version().as_deref(), Some("2.0.0"));
    assert_eq!(manager.extract_context(), ("in".into(), Some(("p".into(), Some(3), 5))));
    assert!(manager.is_empty() && !manager.is_full_history_empty());
}
