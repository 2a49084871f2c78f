//! Rules that run: whose comes first, and what one does that misbehaves. `plugin-api/examples/faulty/operators.rs` has them, and `tiles.rs`
//! intrinsics, and `targets.rs` what decides by the target; `schedule/examples/overreaching.rs` has schedules.

use std::fs;
use std::path::PathBuf;

use libtest_mimic::{Failed, Trial};

use crate::program::{profile, run, tenon};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("rules::two_of_one_benefit", two_of_one_benefit),
        Trial::test("rules::a_choice_comes_first", a_choice_comes_first),
        Trial::test("rules::one_that_misbehaves", one_that_misbehaves),
        Trial::test("rules::a_gradient_of_another_type", gradient_of_another_type),
        Trial::test("rules::intrinsics_that_are_wrong", wrong_intrinsics),
        Trial::test("rules::knobs_that_a_rule_does_not_declare", wrong_knobs),
        Trial::test("rules::each_function_has_a_target", each_function_has_a_target),
        Trial::test("rules::a_plugin_in_a_process_of_its_own", isolated),
    ]
}

/// A folder with a registry: our plugins, and one that misbehaves, where `enable` says which of its passes are on.
struct House {
    folder: tempfile::TempDir,
}

impl House {
    fn new(enable: &str, more: &str) -> Result<Self, Failed> {
        Self::of("libfaulty.so", enable, more)
    }

    fn of(name: &str, enable: &str, more: &str) -> Result<Self, Failed> {
        let folder = tempfile::tempdir()?;
        let plugins = folder.path().join("plugins");
        fs::create_dir(&plugins)?;
        let library = profile().join("examples").join(name);
        fs::copy(&library, plugins.join(name))
            .map_err(|error| format!("{}: {error}", library.display()))?;
        let text = format!(
            "schema = 1\n[[plugins.dir]]\npath = {:?}\nenable = \"all\"\n[[plugins.dir]]\n\
             path = \"plugins\"\nenable = {enable:?}\n{more}",
            profile().display().to_string()
        );
        let house = Self { folder };
        fs::write(house.registry(), text)?;
        Ok(house)
    }

    fn registry(&self) -> PathBuf {
        self.folder.path().join("registry.toml")
    }

    fn file(&self, text: &str) -> Result<PathBuf, Failed> {
        let path = self.folder.path().join("m.ir");
        fs::write(&path, text)?;
        Ok(path)
    }

    /// What `relax.SimplifyExpr` makes of a call, or what it says.
    fn simplified(&self, call: &str) -> Result<String, Failed> {
        let text = format!("fn @main(%x: f32[4]) -> f32[4] {{\n  %y = {call}\n  ret %y\n}}\n");
        self.after("relax.SimplifyExpr", &text)
    }

    /// What a pass makes of a module, or what it says.
    fn after(&self, pass: &str, text: &str) -> Result<String, Failed> {
        let mut command = tenon();
        command.args(["opt", "--pipeline", pass]).arg(self.file(text)?);
        command.arg("--registry").arg(self.registry());
        let output = run(&mut command)?;
        Ok(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    }
}

fn expect(said: String, wanted: &[&str]) -> Result<(), Failed> {
    match wanted.iter().find(|wanted| !said.contains(**wanted)) {
        None => Ok(()),
        Some(wanted) => Err(format!("`{wanted}` is expected in:\n{said}").into()),
    }
}

fn two_of_one_benefit() -> Result<(), Failed> {
    let house = House::new("all", "")?;
    let wanted = [
        "two plugins give the rule `simplify:nn.relu` with the benefit 1",
        "test.faulty",
        "tenon.operators",
        "[rules.\"simplify:nn.relu\"] provider = ",
    ];
    expect(house.simplified("nn.relu(%x)")?, &wanted)?;
    // Nothing of it is on, so it has no say in what is not its own.
    let house = House::new("named", "")?;
    expect(house.simplified("nn.relu(%x)")?, &["%y: f32[4] = nn.relu(%x)"])
}

fn a_choice_comes_first() -> Result<(), Failed> {
    for enable in ["all", "named"] {
        let choice = "[rules.\"simplify:nn.relu\"]\nprovider = \"test.faulty\"\n";
        let house = House::new(enable, choice)?;
        expect(house.simplified("nn.relu(%x)")?, &["%y: f32[4] = abs(%x)"])?;
    }
    let nobody = "[rules.\"simplify:nn.relu\"]\nprovider = \"acme\"\n";
    let said = House::new("all", nobody)?.simplified("nn.relu(%x)")?;
    expect(said, &["takes the rule `simplify:nn.relu` from `acme`, which has none"])?;
    let nothing = "[rules.\"simplify:nn.rellu\"]\nprovider = \"test.faulty\"\n";
    let said = House::new("named", nothing)?.simplified("nn.relu(%x)")?;
    let warning = "registry.toml:9: no plugin has a rule `simplify:nn.rellu`; did you mean `simplify:nn.relu`?";
    expect(said, &["warning: ", warning, "%y: f32[4] = nn.relu(%x)"])
}

fn one_that_misbehaves() -> Result<(), Failed> {
    let house = House::new("all", "")?;
    let said =
        |mode: &str| house.simplified(&format!("test.op.WrongValue(%x) {{ mode = {mode:?} }}"));
    let wanted = [
        "pass `relax.SimplifyExpr` in function @main",
        "the rule `simplify:test.op.WrongValue` of the plugin `test.faulty` is broken: panic at",
        "is too hard",
        "%y: f32[4] = test.op.WrongValue",
    ];
    expect(said("panics")?, &wanted)?;
    expect(said("error")?, &["it does not like the call", "%y: f32[4] = test.op.WrongValue"])?;
    expect(said("lost")?, &["a rule of `simplify` answers what is no node"])?;
    // What has another type is not taken, and one that declines changes nothing.
    expect(said("too much")?, &["%y: f32[4] = test.op.WrongValue(%x)"])?;
    expect(said("nothing")?, &["%y: f32[4] = test.op.WrongValue(%x)"])
}

fn gradient_of_another_type() -> Result<(), Failed> {
    let text = "fn @main(%x: f32[4]) -> f32[] {\n  %y = test.op.WrongValue(%x)\n  %s = sum(%y)\n  ret %s\n}\n";
    let said = House::new("all", "")?.after("relax.Gradient", text)?;
    let why = "`test.op.WrongValue` has no gradient here, since its rule answers a f32[] for argument 0, which is a f32[4]";
    expect(said, &[why])
}

/// Each intrinsic of `test.tiles`, and what is said where a program names it.
const INTRINSICS: [(&str, &str); 13] = [
    ("panics", "the plugin `test.tiles` is broken: panic at"),
    ("says_nothing", "does not say what it computes"),
    ("has_no_code", "does not say which code computes it"),
    ("is_no_loop", "its loops do not have constant extents of 2 or more"),
    ("has_an_operand_too_many", "its operand `unused` is not used"),
    ("is_no_llvm", "the code of the intrinsic `test.is_no_llvm` cannot be compiled"),
    ("defines_something_else", "it does not define `@tile`"),
    ("takes_something_else", "`@tile` is not void (ptr, ptr, i64)"),
    ("lies_on_features", "LLVM cannot make code of `"),
    ("needs_the_unheard_of", "it needs `avx1024`, which x86-64 does not have"),
    ("is_of_another_machine", "it is of aarch64, and the target is x86_64"),
    ("is_not_there", "no plugin has it"),
    ("right", ""),
];

fn wrong_intrinsics() -> Result<(), Failed> {
    let house = House::of("libtiles.so", "all", "")?;
    for (name, wanted) in INTRINSICS {
        let text = format!(
            "prim @double(%x: f32[4], out %y: f32[4]) {{
  for %j in 0..4 {{ intrinsic = \"test.{name}\" }} {{
    %y[%j] = %x[%j] * 2.0
  }}
}}

fn @main(%x: f32[4]) -> f32[4] {{
  %y: f32[4] = call_tir(@double, %x) {{ out = f32[4] }}
  ret %y
}}
"
        );
        let out = house.folder.path().join("m.s");
        let mut command = tenon();
        command.args(["compile", "--target", "x86-64", "--emit", "asm", "-o"]).arg(&out);
        command.arg(house.file(&text)?).arg("--registry").arg(house.registry());
        let output = run(&mut command)?;
        let is_right = name == "right";
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        if output.status.code() != Some(i32::from(!is_right)) || out.exists() != is_right {
            return Err(format!("{name}: {}: {said}", output.status).into());
        }
        expect(said, &[wanted])?;
    }
    Ok(())
}

/// A schedule with a knob that its rule does not declare is an error: no slower rule takes the program unseen.
fn wrong_knobs() -> Result<(), Failed> {
    let cases = [
        (
            "nn.relu",
            "the rule `overreaching::beyond` of `schedule`",
            "chooses 3 for its knob `side`, which goes from 1 to 2",
        ),
        (
            "abs",
            "the rule `overreaching::unknown` of `schedule`",
            "chooses 1 for a knob `side`, which it does not declare",
        ),
    ];
    for (op, rule, wanted) in cases {
        let house = House::of("liboverreaching.so", "all", "")?;
        let text = format!("fn @main(%x: f32[4]) {{\n  %y = {op}(%x)\n  ret %y\n}}\n");
        let said = house.after("relax.LegalizeOps,tir.ApplySchedules", &text)?;
        expect(said, &["pass `tir.ApplySchedules` in function @", rule, wanted])?;
    }
    Ok(())
}

/// Two functions for two processors: rules of `compute`, and passes over functions and modules, see the target of each.
fn each_function_has_a_target() -> Result<(), Failed> {
    let text = "fn @narrow(%x: f32[64]) { target = \"x86-64-v3\" } {
  %y = test.copied(%x)
  ret %y
}

fn @plain(%x: f32[64], %y: f32[64]) {
  %z = test.copied(%x)
  ret %z
}
";
    let house = House::of("libtargets.so", "all", "")?;
    let after = |house: &House, pass: &str| {
        let mut command = tenon();
        command.args(["opt", "--target", "x86-64-v4", "--pipeline", pass]);
        command.arg(house.file(text)?).arg("--registry").arg(house.registry());
        let output = run(&mut command)?;
        Ok::<_, Failed>(
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
        )
    };
    let made = after(&house, "relax.LegalizeOps")?;
    let programs: Vec<&str> = made.split("private prim").skip(1).collect();
    let is_wide: Vec<bool> = programs.iter().map(|text| text.contains("block \"wide\"")).collect();
    let is_named: Vec<bool> =
        programs.iter().map(|text| text.contains("target = \"x86-64-v3\"")).collect();
    if (is_wide, is_named) != (vec![false, true], vec![true, false]) {
        return Err(format!("one program for each target is expected in:\n{made}").into());
    }
    let alone = ["TellTargets", "TellTarget"]
        .map(|pass| format!("[passes.\"test.{pass}\"]\nisolate = true\n"))
        .concat();
    for more in ["", &alone] {
        let house = House::of("libtargets.so", "all", more)?;
        let told = after(&house, "test.TellTargets")?;
        expect(told, &["@narrow has 256 of 512", "@plain has 512 of 512"])?;
        expect(after(&house, "test.TellTarget")?, &["one of 1, 256", "one of 2, 512"])?;
    }
    Ok(())
}

fn isolated() -> Result<(), Failed> {
    let more = "[rules.\"simplify:nn.relu\"]\nprovider = \"test.faulty\"\n\
                [passes.\"relax.SimplifyExpr\"]\nisolate = true\n";
    let house = House::new("all", more)?;
    expect(house.simplified("nn.relu(%x)")?, &["%y: f32[4] = abs(%x)"])?;
    let more = "[plugins.isolate]\n\"test.faulty\" = true\n\
                [rules.\"simplify:nn.relu\"]\nprovider = \"test.faulty\"\n";
    let said = House::new("all", more)?.simplified("nn.relu(%x)")?;
    expect(said, &["`test.faulty` has operators and rules, which run in this process"])
}
