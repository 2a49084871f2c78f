//! Ranges of dimensions, which a library is compiled for.

use std::fs;

use tenon_compiler::runtime::dlpack::{DataType, TensorBuffer};
use tenon_compiler::runtime::model::Model;

use crate::house::House;

/// What is open is how many rows there are; a product and a sum keep some memory between them.
const TEXT: &str = "fn @main(%x: f32[n, 16]) -> f32[n, 16] {
  %w = const(f32[16, 16], 0.5)
  %a = matmul(%x, %w)
  %b = nn.softmax(%a)
  %y = matmul(%b, %w)
  ret %y
}
";

fn ones(rows: i64) -> TensorBuffer {
    let bytes = 1f32.to_le_bytes().repeat(16 * rows as usize);
    TensorBuffer::from_bytes(&bytes, &[rows, 16], DataType::F32).unwrap()
}

#[test]
fn a_range_is_a_bound_of_memory_and_is_kept_by_calls() {
    let house = House::new();
    fs::write(house.at("m.ir"), TEXT).unwrap();
    house.run(&["compile", "m.ir", "-D", "n=2..48", "-o", "m.so"]);
    let model = Model::open(&house.at("m.so")).unwrap();
    let most = model.signature().most_workspace.expect("it has a bound") as usize;
    assert!(most > 0);
    // There is as much from the start on, and the largest call needs all of it.
    let mut context = model.context().unwrap();
    assert_eq!(context.workspace_size(), most);
    for rows in [2, 48] {
        let x = ones(rows);
        assert_eq!(context.run(&[x.as_ref()], None).unwrap()[0].shape(), [rows, 16]);
        assert_eq!(context.workspace_size(), most);
    }
    for rows in [1, 49] {
        let x = ones(rows);
        let error = context.run(&[x.as_ref()], None).unwrap_err().to_string();
        let wanted = format!(
            "`n` is {rows} by input `x`: f32[n, 16], and the model is compiled for 2 to 48"
        );
        assert_eq!(error, wanted);
    }
    let header = String::from_utf8(house.read("m.h")).unwrap();
    assert!(header.contains(&format!("#define M_MOST_WORKSPACE UINT64_C({most})")), "{header}");
    let told = house.run(&["show", "m.so"]);
    assert!(told.contains(&format!("as m_sizes() says, at most {most} bytes")), "{told}");
    assert!(told.contains("ranges       n=2..48"), "{told}");

    // Without an end there is a check and no bound; without a range, neither.
    house.run(&["compile", "m.ir", "-D", "n=2..", "-o", "open.so"]);
    let model = Model::open(&house.at("open.so")).unwrap();
    assert_eq!(model.signature().most_workspace, None);
    assert!(model.run(&[ones(1).as_ref()], None).is_err());
    assert!(model.run(&[ones(1000).as_ref()], None).is_ok());
    house.run(&["compile", "m.ir", "-o", "none.so"]);
    assert!(Model::open(&house.at("none.so")).unwrap().signature().ranges.is_empty());

    let refused = house.refused(&["compile", "m.ir", "-D", "m=1..4", "-o", "m.so"]);
    assert!(
        refused.contains("no input has the dimension `m`") && refused.contains("`n`"),
        "{refused}"
    );
    for wrong in ["n=4..2", "n=-1..2", "n=a..b", "n=..4"] {
        let output = house.tenon(&["compile", "m.ir", "-D", wrong]).output().unwrap();
        assert!(!output.status.success(), "{wrong}");
        assert!(crate::house::said(&output).contains("is no range"), "{wrong}");
    }
}

#[test]
fn a_c_program_is_told_that_a_range_is_not_kept() {
    let house = House::new();
    fs::write(house.at("m.ir"), TEXT).unwrap();
    house.run(&[
        "compile", "m.ir", "-D", "n=2..3", "--emit", "obj", "-o", "model.o", "--prefix", "model",
    ]);
    let code = r#"#include "model.h"
#include <stdio.h>
int main(void) {
  float x[64] = {0}, y[64];
  for (int n = 1; n <= 4; n++) printf("%d ", model_call(n, x, y));
  printf("%d\n", TENON_ERROR_RANGE);
  return 0;
}
"#;
    let said = crate::objects::run_c(&house, code);
    assert_eq!(said, "17 0 0 17 17\n");
}

#[test]
fn a_pass_binds_the_dimensions_of_a_text() {
    let house = House::new();
    fs::write(house.at("m.ir"), TEXT).unwrap();
    let said = house.refused(&["compile", "m.ir", "-D", "n=4", "-o", "m.so"]);
    assert!(said.contains("-D n: ") && said.contains("a pass binds them in a text"), "{said}");
    let pipeline = "BindSymbolicVars{vars = [\"n=4\"]}, default";
    house.run(&["compile", "m.ir", "--pipeline", pipeline, "-o", "m.so"]);
    assert!(house.run(&["show", "m.so"]).contains("x f32[4, 16]"));
}

#[test]
fn passes_and_tuning_take_ranges_of_what_stays_open() {
    let house = House::new();
    fs::write(house.at("m.ir"), TEXT).unwrap();
    let told = house.run(&["opt", "m.ir", "-D", "n=2..48", "--pipeline", "default"]);
    assert!(told.contains("f32[n, 16]"), "{told}");
    let refused = house.refused(&["opt", "m.ir", "-D", "m=1..4", "--pipeline", "default"]);
    assert!(refused.contains("no input has the dimension `m`"), "{refused}");

    let both = TEXT.replace("f32[n, 16]) ->", "f32[n, 16], %z: f32[8, 16]) ->");
    let both = both.replace("-> f32[n, 16]", "-> (f32[n, 16], f32[8, 16])");
    let both = both.replace("  ret %y", "  %v = matmul(%z, %w)\n  ret (%y, %v)");
    fs::write(house.at("both.ir"), both).unwrap();
    let tuned = ["tune", "both.ir", "--db", "t.db", "--trials", "1", "--threads", "1"];
    let output = house.tenon(&tuned).args(["-D", "n=20..48"]).output().unwrap();
    assert!(output.status.success());
    let said = crate::house::said(&output);
    assert!(said.contains("not @") && said.contains("the model: "), "{said}");
    let refused = house.refused(&[&tuned[..], &["-D", "k=1..4"]].concat());
    assert!(refused.contains("no input has the dimension `k`"), "{refused}");
}
