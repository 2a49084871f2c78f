//! The leaves that rows come to in decision trees.
//!
//! ```ir
//! %t = trees.leaves(%x, %r, %f, %s, %y, %n) { depth = 9 }    f32[n, 4], u32[20], u32[900], f32[900], u32[900], u32[900]  =>  u32[n, 20]
//! ```
//!
//! Each tree begins at its root among the nodes. From a node it goes to the one that `y` says where the element of the row that `f`
//! says is at most `s`, and to the one that `n` says otherwise, `depth` times. A leaf leads to itself. What is no number goes where a
//! seventh argument says, if there is one, and where `n` says otherwise. Numbers of nodes and of columns that are not there stand for
//! the last one.

use tenon_plugin_api::ir::BinaryOp;
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::{Block, Buffer, Extent, Scalar, Stmt};
use tenon_plugin_api::rule::prelude::*;

/// Trees that are gone through at once, so that one waits for memory while others go on. Vectors of them wait longer for what they
/// gather.
const TREES: std::ops::RangeInclusive<i64> = 8..=12;
/// Steps that are made before it is asked whether all are at leaves.
const STEPS: i64 = 2;

/// The leaf of each tree that each row comes to
#[op(name = "trees.leaves", args = 6..=7)]
pub struct Leaves {
    /// how many steps lead from a root to a leaf at most
    depth: i64,
}

impl Operator for Leaves {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        if self.depth < 0 {
            return cx.bad_attr("depth", self.depth, "no way has fewer steps than none");
        }
        let x = cx.tensor_of_rank(0, 2)?;
        if ![DType::F32, DType::F64].contains(&x.dtype) {
            let expected = "f32 or f64".into();
            return Err(OpError::WrongDType { index: 0, expected, found: x.dtype });
        }
        let [roots, nodes] = [cx.tensor_of_rank(1, 1)?.dims, cx.tensor_of_rank(2, 1)?.dims];
        let (Some(rows), Some(roots), Some(nodes)) = (x.dims, roots, nodes) else {
            return cx.unsupported("rows or nodes of unknown rank");
        };
        if cx.value(nodes[0]).is_none_or(|nodes| nodes == 0) {
            return Err(cx.wrong_arg(2, "a known number of nodes, one at least"));
        }
        if cx.arg(1)? != cx.tensor_type(DType::U32, Some(roots)) {
            return Err(cx.wrong_arg(1, "the number of a node, as u32, for each tree"));
        }
        let of_nodes = cx.tensor_type(DType::U32, Some(nodes));
        let has_missing = cx.arg(6).is_ok();
        for index in [2, 4, 5].into_iter().chain(has_missing.then_some(6)) {
            if cx.arg(index)? != of_nodes {
                return Err(cx.wrong_arg(index, "a u32 for each node"));
            }
        }
        if cx.arg(3)? != cx.tensor_type(x.dtype, Some(nodes)) {
            return Err(cx.wrong_arg(3, "a number for each node, of the type of the rows"));
        }
        Ok(cx.tensor_type(DType::U32, Some(&[rows[0], roots[0]])))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let x = cx.arg(0)?;
        let [x_values, splits] = [x, cx.arg(3)?].map(numbers);
        let list = |index: usize| cx.arg(index).map(|list| list.elements::<u32>());
        let (roots, features) = (list(1)?, list(2)?);
        let (trues, falses) = (list(4)?, list(5)?);
        let missing = list(6).unwrap_or_else(|_| falses.clone());
        let columns = x.shape()[1];
        let next = |row: &[f64], at: u32| {
            let node = (at as usize).min(features.len() - 1);
            match row.get((features[node] as usize).min(columns.saturating_sub(1))) {
                Some(&x) if x <= splits[node] => trues[node],
                Some(x) if x.is_nan() => missing[node],
                Some(_) => falses[node],
                None => at,
            }
        };
        let mut found = Vec::with_capacity(x.shape()[0] * roots.len());
        for row in 0..x.shape()[0] {
            let row = &x_values[row * columns..(row + 1) * columns];
            for &root in roots.iter() {
                let mut at = root;
                for _ in 0..self.depth {
                    match next(row, at) {
                        leaf if leaf == at => break,
                        next => at = next,
                    }
                }
                found.push(at);
            }
        }
        Ok(vec![Tensor::from_vec(vec![x.shape()[0], roots.len()], found)])
    }
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    match tensor.dtype() {
        DType::F64 => tensor.elements::<f64>().to_vec(),
        _ => tensor.elements::<f32>().iter().map(|&number| f64::from(number)).collect(),
    }
}

/// Some trees at once for each row, until all are at leaves.
#[rule(compute)]
fn program(op: &Leaves, program: &mut Program) -> Result<()> {
    let program = &*program;
    let (walk, out) = (Walk::of(program), program.output(0));
    let [zero, one] = [0, 1].map(|number| program.index(number));
    let (rows, trees, cx) = (out.shape()[0], out.shape()[1], program.cx());
    let count = at_once(program.dim_value(trees));
    let groups = cx.dim_floor_div(cx.dim_add(trees, cx.dim(count - 1)), cx.dim(count));
    let trees = trees.index(program);
    let has_columns = walk.x.shape()[1].index(program).gt(0);
    let rounds = has_columns.select(program.index(op.depth / STEPS), zero);
    program.sweep(&[rows], &[groups], |row, group| {
        let mut body = program.block();
        let at = body.local("at", DType::U32, &[count]);
        let is_open = body.local("is_open", DType::I64, &[1]);
        // Of the last group some are the last tree.
        let tree = |lane: i64| (group[0] * count + lane).min(trees - 1);
        for lane in 0..count {
            body.push(at.set(&[program.index(lane)], walk.roots.at(&[tree(lane)])));
        }
        // The steps that are no round come first, so that there are as many as said.
        let before = walk.steps(&at, row[0], op.depth % STEPS, |_| program.seq(&[]));
        body.push(program.when(has_columns, before));
        body.push(is_open.set(&[zero], one));
        body.push(program.in_turn(rounds, |_| {
            let round = walk
                .steps(&at, row[0], STEPS, |moved| is_open.set(&[zero], moved.select(one, zero)));
            program.when(is_open.at(&[zero]).gt(0), round)
        }));
        for lane in 0..count {
            body.push(out.set(&[row[0], tree(lane)], at.at(&[program.index(lane)])));
        }
        body.finish()
    });
    Ok(())
}

/// As many trees as leave the last group least empty.
fn at_once(trees: Option<i64>) -> i64 {
    match trees {
        Some(few) if few <= *TREES.end() => few.max(1),
        Some(trees) => {
            let groups = TREES.rev().min_by_key(|&size| (trees + size - 1) / size * size);
            groups.unwrap_or(*TREES.end())
        }
        None => *TREES.start(),
    }
}

struct Walk<'p> {
    x: Buffer<'p>,
    roots: Buffer<'p>,
    features: Buffer<'p>,
    splits: Buffer<'p>,
    trues: Buffer<'p>,
    falses: Buffer<'p>,
    missing: Option<Buffer<'p>>,
}

impl<'p> Walk<'p> {
    fn of(program: &'p Program) -> Self {
        let input = |index| program.input(index);
        Self {
            x: input(0),
            roots: input(1),
            features: input(2),
            splits: input(3),
            trues: input(4),
            falses: input(5),
            missing: (program.inputs().len() > 6).then(|| input(6)),
        }
    }

    /// So many steps from each of the nodes `at`, and what then becomes of whether the last one led anywhere.
    fn steps(
        &self,
        at: &Buffer<'p>,
        row: Scalar<'p>,
        count: i64,
        then: impl FnOnce(Scalar<'p>) -> Stmt,
    ) -> Stmt {
        let program = row.program();
        let lanes = program.dim_value(at.shape()[0]).unwrap_or(0);
        let places: Vec<_> = (0..lanes).map(|lane| [program.index(lane)]).collect();
        let mut block = program.block();
        let mut nodes: Vec<_> = places.iter().map(|place| block.bind("at", at.at(place))).collect();
        let mut moved = None;
        for _ in 0..count {
            let next: Vec<_> = nodes.iter().map(|&node| self.step(&mut block, row, node)).collect();
            let each = next.iter().zip(&nodes).map(|(next, &at)| next.binary(BinaryOp::Ne, at));
            moved = each.reduce(|one, other| one.binary(BinaryOp::Or, other));
            nodes = next;
        }
        for (place, node) in places.iter().zip(nodes) {
            block.push(at.set(place, node));
        }
        if let Some(moved) = moved {
            block.push(then(moved));
        }
        block.finish()
    }

    /// The place of a node in the lists.
    fn node(&self, block: &mut Block<'p>, at: Scalar<'p>) -> Scalar<'p> {
        within(block, "node", at, self.features.shape()[0].index(block.program()))
    }

    /// The node behind one, for a row.
    fn step(&self, block: &mut Block<'p>, row: Scalar<'p>, at: Scalar<'p>) -> Scalar<'p> {
        let node = self.node(block, at);
        let columns = self.x.shape()[1].index(block.program());
        let column = within(block, "column", self.features.at(&[node]), columns);
        let x = block.bind("x", self.x.at(&[row, column]));
        let holds = x.binary(BinaryOp::Le, self.splits.at(&[node]));
        let mut otherwise = self.falses.at(&[node]);
        if let Some(missing) = &self.missing {
            let is_missing = x.binary(BinaryOp::Ne, x);
            otherwise = is_missing.select(missing.at(&[node]), otherwise);
        }
        block.bind("next", holds.select(self.trues.at(&[node]), otherwise))
    }
}

/// A number below a count, which is not zero.
fn within<'p>(
    block: &mut Block<'p>,
    name: &str,
    number: Scalar<'p>,
    count: Scalar<'p>,
) -> Scalar<'p> {
    let last = (count - 1).cast(DType::U32);
    block.bind(name, number.min(last).cast(DType::I64))
}
