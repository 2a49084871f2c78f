//! Programs that the threads of a device run.

use super::runtime::{parsed, zeros};
use super::*;

/// Turns each block of 32 elements around, through memory that the block shares.
const REVERSED: &str = r#"
prim @main(%A: f32[70], out %B: f32[70]) { bound = true } {
  for %b in 0..3 thread "blockIdx.x" {
    alloc %S: f32[32] "shared"
    for %y in 0..4 thread "threadIdx.y" {
      for %x in 0..8 thread "threadIdx.x" {
        alloc %L: f32[1] "local"
        %L[0] = 0.0
        if %b * 32 + %y * 8 + %x < 70 {
          %L[0] = %A[%b * 32 + %y * 8 + %x]
        }
        %S[%y * 8 + %x] = %L[0]
        eval barrier()
        %L[0] = %S[31 - %y * 8 - %x]
        if %b * 32 + %y * 8 + %x < 70 {
          %B[%b * 32 + %y * 8 + %x] = %L[0]
        }
      }
    }
  }
}
"#;

fn said(text: &str, count: usize) -> String {
    match Evaluator::new(&parsed(text)).call("main", vec![zeros(&[count])]) {
        Ok(_) => "a value".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn threads_wait_for_each_other() {
    let numbers: Vec<f32> = (0..70).map(|number| number as f32).collect();
    let result = Evaluator::new(&parsed(REVERSED)).call("main", vec![vector(&numbers)]);
    let expected: Vec<f32> = (0..70)
        .map(|at| match at / 32 * 32 + 31 - at % 32 {
            from if from < 70 => from as f32,
            _ => 0.0,
        })
        .collect();
    assert_eq!(elements(&result.unwrap_or_else(|error| panic!("{error}"))), expected);
}

#[test]
fn without_the_barrier_it_is_a_race() {
    // Whoever comes first finds nothing yet.
    let found = said(&REVERSED.replace("eval barrier()", ""), 70);
    assert!(found.contains("of shared buffer `S` is read, which nobody has written"), "{found}");
    // What was there before, nobody waits for.
    let before = REVERSED.replace("%S[%y", "%S[%y * 8 + %x] = 0.0 eval barrier() %S[%y");
    let found = said(&before.replace("%L[0]\n        eval barrier()", "%L[0]"), 70);
    assert!(found.contains("of buffer `S` is touched by thread"), "{found}");
    assert!(found.contains("no barrier is between the two"), "{found}");
}

/// Numbers are right in the order in which threads are run here.
#[test]
fn a_race_is_found_whatever_the_numbers() {
    let text = r#"
prim @main(%A: f32[8], out %B: f32[8]) { bound = true } {
  alloc %S: f32[1] "shared"
  for %x in 0..8 thread "threadIdx.x" {
    if %x == 0 { %S[0] = 1.0 }
    %B[%x] = %S[0] + %A[%x]
  }
}"#;
    let found = said(text, 8);
    assert!(
        found.contains("index [0] of buffer `S` is touched by thread 0 and thread 1"),
        "{found}"
    );
    let fenced = text.replace("%B[", "eval barrier() %B[");
    assert_eq!(said(&fenced, 8), "a value");
}

#[test]
fn several_readers_and_a_writer_are_a_race() {
    let text = r#"
prim @main(%A: f32[8], out %B: f32[8]) { bound = true } {
  alloc %S: f32[8] "shared"
  for %x in 0..8 thread "threadIdx.x" {
    %S[%x] = %A[%x]
    eval barrier()
    %B[%x] = %S[0]
    if %x == 7 { %S[0] = 2.0 }
  }
}"#;
    let found = said(text, 8);
    assert!(found.contains("touched by several threads and thread 7"), "{found}");
}

#[test]
fn a_barrier_that_some_do_not_reach_is_an_error() {
    for (condition, others) in [
        ("if %x < 6 { eval barrier() }", 2),
        ("if %x < 6 { eval barrier() } else { eval barrier() }", 2),
        ("for %k in 0..%x { eval barrier() }", 1),
    ] {
        let text = format!(
            "prim @main(%A: f32[8], out %B: f32[8]) {{ bound = true }} {{
               for %x in 0..8 thread \"threadIdx.x\" {{ {condition} %B[%x] = %A[%x] }} }}"
        );
        let (found, waiting) = (said(&text, 8), 8 - others);
        let wanted =
            format!("{waiting} threads of a block wait at a barrier to which {others} others");
        assert!(found.contains(&wanted), "{condition}: {found}");
    }
}

#[test]
fn what_nobody_wrote_is_not_shared() {
    let text = REVERSED.replace("%S[%y * 8 + %x] = %L[0]", "if %y > 0 { %S[%y * 8 + %x] = %L[0] }");
    let found = said(&text, 70);
    assert!(found.contains("of shared buffer `S` is read, which nobody has written"), "{found}");
    // A block knows nothing of what the one before it has shared.
    let text =
        REVERSED.replace("%S[%y * 8 + %x] = %L[0]", "if %b == 0 { %S[%y * 8 + %x] = %L[0] }");
    let found = said(&text, 70);
    assert!(found.contains("is read, which nobody has written"), "{found}");
}

#[test]
fn blocks_do_not_wait_for_each_other() {
    let text = r#"
prim @main(%A: f32[8], out %B: f32[8]) { bound = true } {
  for %b in 0..2 thread "blockIdx.x" {
    for %x in 0..8 thread "threadIdx.x" {
      %B[%x] = %A[%x]
    }
  }
}"#;
    let found = said(text, 8);
    assert!(found.contains("index [0] of buffer `B` is touched by several blocks"), "{found}");
}

/// The kind of a loop says how it runs, not what it computes, as long as the program is not bound.
#[test]
fn a_program_that_is_not_bound_runs_its_loops_in_order() {
    let text = r#"
prim @main(%A: f32[8], out %B: f32[8]) {
  alloc %S: f32[1]
  %S[0] = 0.0
  for %x in 0..8 thread "threadIdx.x" {
    %S[0] = %S[0] + 1.0
    %B[%x] = %S[0]
  }
}"#;
    let result = Evaluator::new(&parsed(text)).call("main", vec![zeros(&[8])]);
    let expected: Vec<f32> = (1..=8).map(|number| number as f32).collect();
    assert_eq!(elements(&result.unwrap_or_else(|error| panic!("{error}"))), expected);
}

#[test]
fn a_block_has_a_limit_of_threads() {
    let text = "prim @main(%A: f32[8], out %B: f32[8]) { bound = true } {
                  for %x in 0..1000000 thread \"threadIdx.x\" { %B[0] = %A[0] } }";
    let found = said(text, 8);
    assert!(found.contains("more than 16384 threads"), "{found}");
}
