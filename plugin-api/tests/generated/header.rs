//! `tenon_plugin.h`: a template, with what is known of the border put in.

use tenon_plugin_api::abi::layout::Description;
use tenon_plugin_api::abi::layout::RawTable;
use tenon_plugin_api::abi::tables::{
    CodegenTable, DESCRIPTIONS, InstrumentTable, OpTable, PassTable, RuleTable,
};
use tenon_plugin_api::ir::{BinaryOp, DType, Kind, LoopKind, Named, TermKind};

/// Width of a comment's text.
const WIDTH: usize = 100;

/// The text of `include/tenon_plugin.h`.
pub(crate) fn text() -> String {
    include_str!("template.h")
        .replace("{{codes}}", &codes())
        .replace("{{records}}", &DESCRIPTIONS.iter().map(structure).collect::<String>())
        .replace("{{layouts}}", &compared().map(layout).collect::<String>())
        .replace("{{pins}}", &DESCRIPTIONS.iter().map(pins).collect::<String>())
        .replace("{{{interfaces}}}", &interfaces())
}

/// What a plugin lists with its layout: all but what is frozen.
fn compared() -> impl Iterator<Item = &'static Description> {
    const ALL: &[Description] = &DESCRIPTIONS;
    ALL.iter().filter(|description| !description.is_frozen())
}

fn codes() -> String {
    let mut out = named("tenon_kind", "What a node is.", "KIND", Kind::NAMED);
    out += &named("tenon_term_kind", "What a term is.", "TERM", TermKind::NAMED);
    let dtypes: Vec<(String, u32)> =
        DType::all().map(|dtype| (dtype.to_string(), dtype.0 as u32)).collect();
    out += &plain("tenon_dtype", "The type of one element.", "DTYPE", &dtypes);
    let loops: Vec<(String, u32)> =
        LoopKind::ALL.iter().map(|kind| (snake(&format!("{kind:?}")), *kind as u32)).collect();
    out += &plain("tenon_loop_kind", "How a loop runs.", "LOOP", &loops);
    let ops: Vec<(String, u32)> =
        BinaryOp::ALL.iter().map(|op| (snake(&format!("{op:?}")), *op as u32)).collect();
    out + &plain("tenon_binary_op", "A binary scalar operation.", "BINARY", &ops)
}

fn named(name: &str, doc: &str, prefix: &str, codes: &[Named]) -> String {
    let mut out =
        format!("/* {doc} A code that is not here is one of a later version. */\nenum {name} {{\n");
    for code in codes {
        out += &comment(code.doc, "  ");
        out += &format!("  TENON_{prefix}_{} = {},\n", code.name, code.code);
    }
    out + "};\n\n"
}

fn plain(name: &str, doc: &str, prefix: &str, codes: &[(String, u32)]) -> String {
    let mut out =
        format!("/* {doc} A code that is not here is one of a later version. */\nenum {name} {{\n");
    for (code, number) in codes {
        out += &format!("  TENON_{prefix}_{} = {number},\n", code.to_uppercase());
    }
    out + "};\n\n"
}

/// `FloorDiv` as `floor_div`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// A doc comment as one of C.
fn comment(doc: &[&str], indent: &str) -> String {
    let text = doc.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    let text = text.replace("[`", "`").replace("`]", "`").replace("Kind::", "TENON_KIND_");
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one");
        if line.len() + word.len() + indent.len() > WIDTH {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    format!("{indent}/* {} */\n", lines.join(&format!("\n{indent} * ")))
}

/// A declaration of `name` with a type.
fn declaration(ty: &str, name: &str) -> String {
    let gap = if ty.ends_with('*') { "" } else { " " };
    format!("{ty}{gap}{name}")
}

fn structure(description: &Description) -> String {
    let name = description.c_name;
    let mut out = comment(description.doc, "");
    if let Some(id) = description.id {
        out += &format!("#define {} \"{id}\"\n", id_constant(description));
    }
    // Some of them are named before they are defined.
    let is_named = ["tenon_field", "tenon_interface", "tenon_tensor"].contains(&name);
    let (start, end) = match is_named {
        true => (format!("struct {name} {{\n"), "};\n\n".to_owned()),
        false => (format!("typedef struct {name} {{\n"), format!("}} {name};\n\n")),
    };
    out += &start;
    for (index, field) in description.layout.iter().enumerate() {
        out += &comment(description.docs[index], "  ");
        out += &match description.params.get(index) {
            Some(Some(params)) => function(&field.name, description.results[index], params),
            _ => match field.ty.split_once('(') {
                Some((result, params)) => {
                    format!("  {}({params};\n", declaration(result, &format!("(*{})", field.name)))
                }
                None => format!("  {};\n", declaration(&field.ty, &field.name)),
            },
        };
    }
    out + &end
}

fn function(name: &str, result: &str, params: &[(&str, &str)]) -> String {
    let params: Vec<String> = params.iter().map(|(name, ty)| declaration(ty, name)).collect();
    let params = if params.is_empty() { "void".to_owned() } else { params.join(", ") };
    format!("  {}({params});\n", declaration(result, &format!("(*{name})")))
}

fn id_constant(description: &Description) -> String {
    let name = description.c_name.trim_end_matches("_table").trim_start_matches("tenon_");
    format!("TENON_{}_INTERFACE", name.to_uppercase())
}

fn layout(description: &Description) -> String {
    let name = description.c_name;
    let mut out = format!("static const tenon_field {name}_layout[] = {{\n");
    for field in description.layout {
        out += &format!("    TENON_FIELD({name}, {}, \"{}\"),\n", field.name, field.ty);
    }
    out + "};\n\n"
}

fn pins(description: &Description) -> String {
    let name = description.c_name;
    let mut out = format!("TENON_ASSERT(sizeof({name}) == {});\n", description.size);
    for field in description.layout {
        out += &format!("TENON_ASSERT(offsetof({name}, {}) == {});\n", field.name, field.offset);
    }
    out + "\n"
}

/// The interfaces that a plugin lists, as lines of a macro.
fn interfaces() -> String {
    let entries = compared().map(|description| {
        let name = description.c_name;
        let (id, table) = match description.id {
            Some(id) if id == PassTable::ID => (id, "&(passes)"),
            Some(id) if id == InstrumentTable::ID => (id, "TENON_INSTRUMENT_TABLE"),
            Some(id) if id == CodegenTable::ID => (id, "TENON_CODEGEN_TABLE"),
            Some(id) if id == OpTable::ID => (id, "TENON_OP_TABLE"),
            Some(id) if id == RuleTable::ID => (id, "TENON_RULE_TABLE"),
            Some(id) => (id, "NULL"),
            None => (name, "NULL"),
        };
        format!("      TENON_INTERFACE(\"{id}\", {name}, {table}),")
    });
    let lines: Vec<String> = entries.map(|entry| format!("{entry:<107} \\\n")).collect();
    format!("{{{:<30} \\\n{}  }}", "", lines.concat())
}
