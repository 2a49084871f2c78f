//! Random well-formed modules: graph functions as graphs, in block form and in between, with branches,
//! tuples, closures, calls and symbolic dimensions; and tensor programs. Some of the functions with bindings make
//! memory, write it by tensor programs, in branches and closures as well, and read it in between.
//!
//! All types are there and right, all indices are in bounds, and everything can be evaluated. The same
//! seed gives the same module.

mod calls;
mod graph;
mod prim;

pub use calls::{Drawn, Run, numbers_of, random_calls};

use crate::ir::{AttrValue, Context, Cx, DType, Dim, Module, Type};

/// The operators that graphs are made of, by name: they take tensors of f32 and give one, element by element.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    /// Of one argument.
    pub unary: Vec<String>,
    /// Of two arguments, which are broadcast. The first one tells from its result whether an argument was read too late: it
    /// gives NaN where one of them is.
    pub binary: Vec<String>,
}

impl Vocabulary {
    /// That of operators with these names.
    pub fn new(unary: &[&str], binary: &[&str]) -> Self {
        let [unary, binary] = [unary, binary].map(|all| all.iter().map(|&it| it.into()).collect());
        Self { unary, binary }
    }
}

/// A module from a seed. A larger size makes more and longer functions.
pub fn random_module(cx: &Cx, vocabulary: &Vocabulary, seed: u64, size: usize) -> Module {
    let mut random = Random::new(seed);
    let mut module = Module::new(cx.clone());
    if random.chance(50) {
        // No later phase: functions within functions and graphs belong to this one.
        module.attrs = cx.attrs(&[("phase", "ingest".into()), ("seed", (seed as i64).into())]);
    }
    for number in 0..1 + random.below(2 + size / 40) {
        let (name, function) = match random.below(3) {
            0 => (format!("prim_{number}"), prim::function(cx, &mut random, size)),
            _ => {
                let tensor = random_tensor(cx, &mut random, DType::F32);
                let writes = random.chance(70) && cx.terms().static_tensor(tensor).is_some();
                let write = writes.then(|| cx.symbol(&format!("write_{number}")));
                if let Some(write) = write {
                    module.insert(write, prim::write(cx, &mut random, tensor));
                }
                let function =
                    graph::function(&module, vocabulary, &mut random, size, (tensor, write));
                (format!("func.{number}"), function)
            }
        };
        module.insert(cx.symbol(&name), function);
    }
    module
}

/// Numbers that look random.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which must not be 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.any() % end as u64) as usize
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of the items, of which there must be one.
    pub fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }
}

/// The symbols that dimensions are made of.
const SYMBOLS: &[&str] = &["n", "m", "batch size"];

/// The type of a shape that has all symbols.
fn sizes(cx: &Cx) -> Type {
    let dims: Vec<Dim> = SYMBOLS.iter().map(|name| cx.dim_symbol(name)).collect();
    cx.shape_type(Some(&dims))
}

/// A dimension, symbolic in a third of the cases.
fn random_dim(cx: &Cx, random: &mut Random) -> Dim {
    let n = cx.dim_symbol(random.pick(SYMBOLS));
    match random.below(9) {
        0 => n,
        1 => cx.dim_add(cx.dim_mul(n, cx.dim(2)), cx.dim(random.below(5) as i64 - 2)),
        2 => cx.dim_floor_div(cx.dim_add(n, cx.dim(1)), cx.dim(2)),
        _ => cx.dim(1 + random.below(4) as i64),
    }
}

fn random_tensor(cx: &Cx, random: &mut Random, dtype: DType) -> Type {
    let rank = random.below(4);
    let dims: Vec<Dim> = (0..rank).map(|_| random_dim(cx, random)).collect();
    cx.tensor_type(dtype, &dims)
}

/// Some annotation, with each kind of value now and then.
fn random_attrs(cx: &Cx, random: &mut Random) -> crate::ir::Attrs {
    let mut entries: Vec<(&str, AttrValue)> = Vec::new();
    if random.chance(30) {
        entries.push(("tenon.int", (random.any() as i64 >> random.below(64)).into()));
    }
    if random.chance(20) {
        entries.push(("tenon.float", f64::from_bits(random.any()).into()));
    }
    if random.chance(20) {
        entries.push(("tenon.ints", vec![1, -2, random.below(9) as i64].into()));
    }
    if random.chance(20) {
        entries.push(("tenon.a \"name\"", random.pick(&["", "a\n\t\"b\\", "é\u{1}"]).into()));
    }
    if random.chance(20) {
        let ty = random_tensor(cx, random, DType::BF16);
        let dim = random_dim(cx, random);
        let flag = cx.bool(random.chance(50));
        let inner = cx.attrs(&[("dim", AttrValue::Term(dim.into())), ("ty", ty.into())]);
        entries.push(("tenon.list", AttrValue::Term(cx.list(&[flag, inner.into()]))));
    }
    cx.attrs(&entries)
}
