//! Ten shapes of input, each as graph functions and as tensor programs, of any size.
//!
//! The size is the number of bindings, or of statements, up to a small factor. A graph function ends in a loss, so
//! that it has a gradient; nothing in it is dead.

use std::fmt::Write;

/// A shape of input.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// The text of a module of graph functions.
    pub(crate) graph: fn(usize) -> String,
    /// The text of a module of tensor programs; nothing where they have no such shape.
    pub(crate) program: Option<fn(usize) -> String>,
}

pub(crate) const SHAPES: &[Shape] = &[
    // Each reads the one before.
    Shape { name: "chain", graph: chain, program: Some(stores_in_a_chain) },
    // A chain with a tooth at each link; an expression as deep as it is long.
    Shape { name: "comb", graph: comb, program: Some(deep_expression) },
    // Each value is read twice, and its readers meet: there are 2^n ways through.
    Shape { name: "diamonds", graph: diamonds, program: Some(lets_read_twice) },
    // All read one.
    Shape { name: "fan-out", graph: fan_out, program: Some(readers_of_one_let) },
    // Choices within choices; loops and conditions within each other.
    Shape { name: "nesting", graph: nested_choices, program: Some(nested_statements) },
    // Functions of three bindings, each of which calls the one before; small programs.
    Shape { name: "functions", graph: functions, program: Some(programs) },
    // One computation, written again and again.
    Shape { name: "equal", graph: equal, program: Some(equal_loops) },
    // No two alike: attributes, and so tensor programs; extents.
    Shape { name: "distinct", graph: distinct, program: Some(distinct_loops) },
    // Nothing is left of it.
    Shape { name: "collapsing", graph: collapsing, program: Some(arithmetic_for_nothing) },
    // Put into tuples and taken out again, one within the other.
    Shape { name: "tuples", graph: tuples, program: None },
];

/// `@main`, with a line for each number, and a loss at its end.
fn main(size: usize, last: &str, line: impl Fn(usize, &mut String)) -> String {
    let mut text = "fn @main(%v0: f32[4, 4], %x: f32[4, 4]) -> f32[] {\ndataflow {\n".to_owned();
    for number in 1..=size {
        line(number, &mut text);
    }
    push(&mut text, format_args!("%loss = sum({last})\n}}\nret %loss\n}}\n"));
    text
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    text.write_fmt(line).expect("memory");
}

fn chain(size: usize) -> String {
    main(size, &format!("%v{size}"), |i, text| {
        let before = i - 1;
        match i % 4 {
            0 => push(text, format_args!("%v{i} = matmul(%v{before}, %x)\n")),
            1 => push(text, format_args!("%v{i} = add(%v{before}, %x)\n")),
            2 => push(text, format_args!("%v{i} = nn.relu(%v{before})\n")),
            _ => push(text, format_args!("%v{i} = exp(%v{before})\n")),
        }
    })
}

fn comb(size: usize) -> String {
    let size = size / 2;
    main(size, &format!("%v{size}"), |i, text| {
        let before = i - 1;
        push(text, format_args!("%w{i} = multiply(%x, const(f32[], {i}))\n"));
        push(text, format_args!("%v{i} = add(%v{before}, %w{i})\n"));
    })
}

fn diamonds(size: usize) -> String {
    let size = size / 3;
    main(size, &format!("%v{size}"), |i, text| {
        let before = i - 1;
        push(text, format_args!("%a{i} = exp(%v{before})\n%b{i} = tanh(%v{before})\n"));
        push(text, format_args!("%v{i} = add(%a{i}, %b{i})\n"));
    })
}

/// A line for each number, and the sum of all that they compute.
fn concatenated(size: usize, line: impl Fn(usize, &mut String)) -> String {
    main(size, "%all", |i, text| {
        line(i, text);
        if i == size {
            text.push_str("%all = concatenate((%v1");
            (2..=size).for_each(|i| push(text, format_args!(", %v{i}")));
            text.push_str("))\n");
        }
    })
}

fn fan_out(size: usize) -> String {
    concatenated(size, |i, text| {
        if i == 1 {
            text.push_str("%one = exp(%x)\n");
        }
        match i % 3 {
            0 => push(text, format_args!("%v{i} = nn.relu(%one)\n")),
            1 => push(text, format_args!("%v{i} = matmul(%one, %x)\n")),
            _ => push(text, format_args!("%v{i} = add(%one, const(f32[], {i}))\n")),
        }
    })
}

fn nested_choices(size: usize) -> String {
    let size = size / 4;
    let mut text = "fn @main(%v0: f32[4, 4], %c: bool[]) -> f32[] {\n".to_owned();
    for i in 1..=size {
        let before = i - 1;
        push(&mut text, format_args!("%v{i} = exp(%v{before})\n%r{i} = if %c {{\n"));
    }
    push(&mut text, format_args!("ret %v{size}\n"));
    for i in (1..=size).rev() {
        push(&mut text, format_args!("}} else {{\nret %v{i}\n}}\n%s{i} = nn.relu(%r{i})\n"));
        if i > 1 {
            push(&mut text, format_args!("ret %s{i}\n"));
        }
    }
    text + "%loss = sum(%s1)\nret %loss\n}\n"
}

fn functions(size: usize) -> String {
    let mut text = "fn @f0(%x: f32[4, 4]) -> f32[4, 4] {\n%a = exp(%x)\nret %a\n}\n".to_owned();
    for i in 1..=size / 3 {
        push(&mut text, format_args!("fn @f{i}(%x: f32[4, 4]) -> f32[4, 4] {{\n%a = exp(%x)\n"));
        push(&mut text, format_args!("%b = @f{}(%a)\n%c = add(%b, %x)\nret %c\n}}\n", i - 1));
    }
    text + "fn @main(%x: f32[4, 4]) -> f32[] {\n%loss = sum(%x)\nret %loss\n}\n"
}

fn equal(size: usize) -> String {
    concatenated(size, |i, text| push(text, format_args!("%v{i} = matmul(%v0, %x)\n")))
}

fn distinct(size: usize) -> String {
    main(size, &format!("%v{size}"), |i, text| {
        push(text, format_args!("%v{i} = clip(%v{}) {{ max = {i}.5 }}\n", i - 1));
    })
}

fn collapsing(size: usize) -> String {
    // An even number of each, so that nothing is left.
    let each = size / 8 * 2;
    main(4 * each, &format!("%v{}", 4 * each), |i, text| {
        let before = i - 1;
        match (i - 1) / each {
            0 => push(text, format_args!("%v{i} = negative(%v{before})\n")),
            1 => push(text, format_args!("%v{i} = transpose(%v{before})\n")),
            2 => push(text, format_args!("%v{i} = multiply(%v{before}, const(f32[], 1))\n")),
            _ if i % 2 == 0 => push(text, format_args!("%v{i} = squeeze(%v{before})\n")),
            _ => push(text, format_args!("%v{i} = expand_dims(%v{before}) {{ axis = [0] }}\n")),
        }
    })
}

fn tuples(size: usize) -> String {
    let size = size / 5;
    main(size, &format!("%v{size}"), |i, text| {
        let before = i - 1;
        push(text, format_args!("%t{i} = (%v{before}, (%x, %v{before}))\n%u{i} = %t{i}.1\n"));
        push(text, format_args!("%a{i} = %u{i}.1\n%b{i} = %t{i}.0\n"));
        push(text, format_args!("%v{i} = add(%a{i}, %b{i})\n"));
    })
}

/// One tensor program, with a line for each number.
fn program(size: usize, line: impl Fn(usize, &mut String)) -> String {
    let mut text = "prim @main(%A: f32[16], out %B: f32[16]) {\n".to_owned();
    for number in 1..=size {
        line(number, &mut text);
    }
    text + "}\n"
}

fn stores_in_a_chain(size: usize) -> String {
    program(size, |i, text| {
        push(text, format_args!("%B[{}] = %B[{}] + %A[{}]\n", i % 16, (i + 15) % 16, i % 7));
    })
}

fn deep_expression(size: usize) -> String {
    program(size, |i, text| {
        let start = if i == 1 { "%B[0] = %A[0]" } else { "" };
        let sign = if i % 2 == 0 { '+' } else { '-' };
        let end = if i == size { "\n" } else { "" };
        push(text, format_args!("{start} {sign} %A[{}]{end}", i % 16));
    })
}

fn lets_read_twice(size: usize) -> String {
    program(size, |i, text| {
        match i {
            1 => push(text, format_args!("let %v1: f32 = %A[0]\n")),
            _ => push(text, format_args!("let %v{i}: f32 = %v{0} * %v{0}\n", i - 1)),
        }
        if i == size {
            push(text, format_args!("%B[0] = %v{i}\n"));
        }
    })
}

fn readers_of_one_let(size: usize) -> String {
    program(size, |i, text| {
        if i == 1 {
            text.push_str("let %one: f32 = %A[0] * %A[1]\n");
        }
        push(text, format_args!("%B[{}] = %one + %A[{}]\n", i % 16, i % 13));
    })
}

fn nested_statements(size: usize) -> String {
    let mut text = program(size, |i, text| match i % 2 {
        0 => push(text, format_args!("for %i{i} in 0..2 {{\n")),
        _ => push(text, format_args!("if %A[{}] < {i}.0 {{\n", i % 16)),
    });
    text.truncate(text.len() - 2);
    text.push_str("%B[0] = %B[0] + %A[0]\n");
    text + &"}\n".repeat(size + 1)
}

fn programs(size: usize) -> String {
    let mut text = String::new();
    for i in 1..=size / 3 {
        push(&mut text, format_args!("prim @p{i}(%A: f32[16], out %B: f32[16]) {{\n"));
        text.push_str("for %i in 0..16 {\n%B[%i] = exp(%A[%i])\n}\n}\n");
    }
    text
}

fn equal_loops(size: usize) -> String {
    program(size / 2, |_, text| text.push_str("for %i in 0..16 {\n%B[%i] = %A[%i] * 2.0\n}\n"))
}

fn distinct_loops(size: usize) -> String {
    program(size / 2, |i, text| {
        let extent = 2 + i % 15;
        push(text, format_args!("for %i in 0..{extent} {{\n%B[%i] = %B[%i] + {i}.0\n}}\n"));
    })
}

fn arithmetic_for_nothing(size: usize) -> String {
    program(size / 4, |i, text| {
        text.push_str(if i == 1 { "%B[0] = %A[0" } else { "" });
        text.push_str(" + 0 - 0");
        text.push_str(if i == size / 4 { "]\n" } else { "" });
    })
    .replace("}\n", &{
        let mut rest = String::new();
        for i in 1..=size / 4 {
            push(&mut rest, format_args!("for %i{i} in 0..1 {{\n%B[%i{i} + 1] = %B[1]\n}}\n"));
        }
        rest + "}\n"
    })
}
