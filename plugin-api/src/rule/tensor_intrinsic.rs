//! A tensor intrinsic as a value, and whether it computes what a nest of loops does.
//!
//! The nest has the loops of the description, of the same extents and in the same order, around one assignment. That is compared as a
//! tree, where the operands of a sum or a product may have changed places; each element that is read gives an operand of the
//! intrinsic, and how far it moves with each loop has to be what the description says.

use std::collections::HashMap;

use crate::ir::{Attrs, BinaryOp, BodyView, DType, Expr, Kind, Term, TermView, Terms, View};
use crate::program::intrinsic::{ARCHITECTURE, FEATURES, LLVM, OPEN, ROUNDS, STRIDED};

/// Attribute of a loop: the intrinsic that computes what it and the loops inside it do.
pub const INTRINSIC: &str = "intrinsic";

/// A description has at most so many nodes, and so many loops: comparing it may go back and forth.
const MAX_NODES: usize = 64;
const MAX_LOOPS: usize = 8;

/// An instruction that computes a tile.
#[derive(Clone, Debug)]
pub struct TensorIntrinsic {
    /// Its name.
    pub name: String,
    /// The architecture that has it.
    pub architecture: String,
    /// The features of a processor that it needs.
    pub features: Vec<String>,
    /// The code, as `docs/schedules.md` says.
    pub llvm: String,
    /// Whether floats are added in another order, or rounded otherwise, than the loops do.
    pub rounds_differently: bool,
    /// The loops, outermost first, with their extents.
    pub axes: Vec<(String, i64)>,
    /// Of each loop of which a nest may have another number of steps, that which it has to be a multiple of, and the most.
    pub open: Vec<Option<(i64, i64)>>,
    /// The operands; the last one is written.
    pub operands: Vec<TileOperand>,
    /// What is assigned, operands before their users.
    value: Vec<Node>,
}

/// An operand of a [`TensorIntrinsic`].
#[derive(Clone, Debug)]
pub struct TileOperand {
    /// Its name.
    pub name: String,
    /// Its element type.
    pub dtype: DType,
    /// How many elements it moves in a step of each loop, rows of any length left out.
    pub steps: Vec<i64>,
    /// How many rows it moves in a step of each loop, where rows may lie any number of elements apart.
    pub rows: Option<Vec<i64>>,
}

/// A node of what is assigned.
#[derive(Clone, Debug)]
enum Node {
    Element(usize),
    Int(DType, i64),
    Float(DType, u64),
    Binary(BinaryOp, usize, usize),
    Cast(DType, usize),
    Select(usize, usize, usize),
    Function(String, Vec<usize>),
}

/// An element that a program reads or writes.
#[derive(Clone, Debug)]
pub struct TileElement {
    /// Its buffer.
    pub buffer: Expr,
    /// Where it lies there.
    pub indices: Vec<Expr>,
}

impl TensorIntrinsic {
    /// The intrinsic that a program describes. `facts` is what is said of it.
    ///
    /// # Errors
    /// When the program has another form than a description, in a few words.
    pub fn read(
        body: BodyView<'_>,
        name: &str,
        root: Expr,
        facts: Attrs,
    ) -> std::result::Result<Self, String> {
        let View::PrimFunc { params, body: mut stmt, .. } = body.view(root) else {
            return Err("it is no tensor program".to_owned());
        };
        let terms = body.terms();
        let (mut axes, mut vars) = (Vec::new(), Vec::new());
        while let View::For { var, extent, body: inside, .. } = body.view(stmt) {
            let View::Int(extent @ 2..) = body.view(extent) else {
                return Err("its loops do not have constant extents of 2 or more".to_owned());
            };
            let View::Var { name } = body.view(var) else { break };
            axes.push((terms.str(name).to_owned(), extent));
            vars.push(var);
            stmt = inside;
        }
        let View::Store { buffer, value, indices } = body.view(stmt) else {
            return Err("its loops do not hold one assignment".to_owned());
        };
        if axes.is_empty() || axes.len() > MAX_LOOPS {
            return Err(format!("it has {} loops, and may have 1 to {MAX_LOOPS}", axes.len()));
        }
        let said = terms.attrs(facts);
        let mut this = Self {
            name: name.to_owned(),
            architecture: said.str(ARCHITECTURE).unwrap_or_default().to_owned(),
            features: strings(terms, said.get(FEATURES)),
            llvm: said.str(LLVM).unwrap_or_default().to_owned(),
            rounds_differently: said.bool(ROUNDS).unwrap_or(false),
            open: open_axes(terms, said.get(OPEN), &axes)?,
            axes,
            operands: Vec::new(),
            value: Vec::new(),
        };
        let mut reading = Reading { body, vars, params: params.to_vec(), of: HashMap::new() };
        let strided = strings(terms, said.get(STRIDED));
        for &param in &reading.params {
            this.operands.push(operand(body, param, &strided)?);
        }
        let written = reading.params.len().checked_sub(1).map(|last| reading.params[last]);
        if written != Some(buffer) {
            return Err("it does not write the last of its operands".to_owned());
        }
        let last = this.operands.len() - 1;
        reading.place(&mut this, last, &indices.to_vec())?;
        reading.value(&mut this, value)?;
        match (0..this.operands.len()).find(|operand| !reading.of.contains_key(operand)) {
            Some(unused) => {
                Err(format!("its operand `{}` is not used", this.operands[unused].name))
            }
            None => Ok(this),
        }
    }

    /// The elements that the assignment `store` reads and writes for each operand. `follow` leads from a variable to the value
    /// that it is a name of, and leaves other nodes alone.
    ///
    /// # Errors
    /// When it assigns something else, in a few words.
    pub fn elements(
        &self,
        body: BodyView<'_>,
        store: Expr,
        follow: &dyn Fn(Expr) -> Expr,
    ) -> std::result::Result<Vec<TileElement>, String> {
        let View::Store { buffer, value, indices } = body.view(store) else {
            return Err("it holds more than one assignment".to_owned());
        };
        let indices = indices.to_vec();
        self.elements_of(body, TileElement { buffer, indices }, value, follow)
    }

    /// The same for an assignment of `value` to `written`.
    ///
    /// # Errors
    /// As [`TensorIntrinsic::elements`].
    pub fn elements_of(
        &self,
        body: BodyView<'_>,
        written: TileElement,
        value: Expr,
        follow: &dyn Fn(Expr) -> Expr,
    ) -> std::result::Result<Vec<TileElement>, String> {
        let last = self.operands.len() - 1;
        let mut found = vec![None; self.operands.len()];
        let wanted = self.operands[last].dtype;
        let dtype = dtype_of(body, written.buffer);
        if dtype != Some(wanted) {
            return Err(format!(
                "`{}` is {wanted}, and what it writes is not",
                self.operands[last].name
            ));
        }
        let buffer = written.buffer;
        found[last] = Some(written);
        Unifying { intrinsic: self, body, follow }.unify(
            self.value.len() - 1,
            value,
            &mut found,
        )?;
        let found: Option<Vec<TileElement>> = found.into_iter().collect();
        let found = found.ok_or_else(|| "it does not read all operands".to_owned())?;
        if found[..last].iter().any(|element| element.buffer == buffer) {
            return Err("it reads other elements of the buffer that it writes".to_owned());
        }
        Ok(found)
    }

    /// Whether the loop `axis` of a nest may have so many steps.
    pub fn fits(&self, axis: usize, extent: i64) -> bool {
        match (self.axes.get(axis), self.open.get(axis)) {
            (Some(_), Some(&Some((step, most)))) => {
                (2..=most).contains(&extent) && extent % step == 0
            }
            (Some(&(_, described)), _) => extent == described,
            (None, _) => false,
        }
    }

    /// The elements from one row of an operand to the next, given how many elements it moves with each loop, none where that is not
    /// known; 0 where the operand has rows of its own length.
    ///
    /// # Errors
    /// When it moves otherwise than the intrinsic wants it to, in a few words.
    pub fn row_stride(
        &self,
        operand: usize,
        moves: &[Option<i64>],
    ) -> std::result::Result<i64, String> {
        let TileOperand { name, steps, rows, .. } = &self.operands[operand];
        let mut stride = None;
        for (at, moved) in moves.iter().enumerate() {
            let axis = &self.axes[at].0;
            let Some(moved) = moved else {
                return Err(format!("how far `{name}` moves with `{axis}` is not known"));
            };
            let row = rows.as_ref().map_or(0, |rows| rows[at]);
            let rest = moved - steps[at];
            let fits = match (row, stride) {
                (0, _) => rest == 0,
                (row, None) => {
                    stride = Some(rest / row);
                    rest % row == 0
                }
                (row, Some(stride)) => rest == row * stride,
            };
            if !fits {
                let wanted = if row == 0 { steps[at].to_string() } else { "whole rows".to_owned() };
                return Err(format!(
                    "`{name}` moves by {moved} with `{axis}`, and has to move by {wanted}"
                ));
            }
        }
        Ok(stride.unwrap_or(0))
    }
}

fn operand(
    body: BodyView<'_>,
    param: Expr,
    strided: &[String],
) -> std::result::Result<TileOperand, String> {
    let View::Buffer { name, .. } = body.view(param) else {
        return Err("an operand is no buffer".to_owned());
    };
    let name = body.terms().str(name).to_owned();
    let Some(dtype) = dtype_of(body, param) else {
        return Err(format!("its operand `{name}` has no constant shape"));
    };
    let rows = strided.contains(&name).then(Vec::new);
    Ok(TileOperand { name, dtype, steps: Vec::new(), rows })
}

/// What is said of each loop whose extent may be another one.
fn open_axes(
    terms: Terms<'_>,
    list: Option<TermView<'_>>,
    axes: &[(String, i64)],
) -> std::result::Result<Vec<Option<(i64, i64)>>, String> {
    let mut open = vec![None; axes.len()];
    let Some(TermView::List(items)) = list else { return Ok(open) };
    for &item in items {
        let TermView::List(&[name, step, most]) = terms.view(item) else {
            return Err("an extent that may be another one is no name with two numbers".to_owned());
        };
        let (TermView::Str(name), TermView::Int(step @ 1..), TermView::Int(most)) =
            (terms.view(name), terms.view(step), terms.view(most))
        else {
            return Err("an extent that may be another one is no name with two numbers".to_owned());
        };
        let Some(at) = axes.iter().position(|(axis, _)| axis == name) else {
            return Err(format!("it has no loop `{name}`"));
        };
        let described = axes[at].1;
        if described % step != 0 || described > most {
            return Err(format!("its loop `{name}` has not the extent that it may have"));
        }
        open[at] = Some((step, most));
    }
    Ok(open)
}

fn strings(terms: Terms<'_>, list: Option<TermView<'_>>) -> Vec<String> {
    let Some(TermView::List(items)) = list else { return Vec::new() };
    let text = |&item: &Term| match terms.view(item) {
        TermView::Str(text) => Some(text.to_owned()),
        _ => None,
    };
    items.iter().filter_map(text).collect()
}

fn dtype_of(body: BodyView<'_>, buffer: Expr) -> Option<DType> {
    let (dtype, _) = body.terms().tensor(body.ty(buffer)?)?;
    Some(dtype)
}

/// Reads what a description assigns.
struct Reading<'a> {
    body: BodyView<'a>,
    vars: Vec<Expr>,
    params: Vec<Expr>,
    /// Where each operand was read or written first.
    of: HashMap<usize, Vec<Expr>>,
}

impl Reading<'_> {
    /// An element of an operand: how it moves with the loops.
    fn place(
        &mut self,
        this: &mut TensorIntrinsic,
        operand: usize,
        indices: &[Expr],
    ) -> std::result::Result<(), String> {
        let body = self.body;
        let name = this.operands[operand].name.clone();
        if let Some(first) = self.of.get(&operand) {
            let same = first.iter().zip(indices).all(|(&a, &b)| is_same(body, a, b));
            return match same {
                true => Ok(()),
                false => Err(format!("its operand `{name}` is used at two places")),
            };
        }
        let shape = body.ty(self.params[operand]).and_then(|ty| body.terms().static_tensor(ty));
        let Some((_, shape)) = shape else {
            return Err(format!("its operand `{name}` has no constant shape"));
        };
        let mut steps = vec![0; this.axes.len()];
        let (mut rows, mut size) = (None, 1);
        for (axis, (&index, extent)) in indices.iter().zip(&shape).enumerate().rev() {
            let moves: Option<Vec<i64>> =
                self.vars.iter().map(|&var| step_of(body, index, var, &|expr| expr)).collect();
            let Some(moves) = moves else {
                return Err(format!(
                    "the places of its operand `{name}` are not sums of its loops"
                ));
            };
            if axis == 0 && this.operands[operand].rows.is_some() {
                rows = Some(moves);
            } else {
                steps.iter_mut().zip(moves).for_each(|(step, moved)| *step += moved * size);
            }
            size *= extent;
        }
        (this.operands[operand].steps, this.operands[operand].rows) = (steps, rows);
        self.of.insert(operand, indices.to_vec());
        Ok(())
    }

    fn value(&mut self, this: &mut TensorIntrinsic, root: Expr) -> std::result::Result<(), String> {
        let mut made: HashMap<Expr, usize> = HashMap::new();
        let mut stack = vec![(root, false)];
        while let Some((expr, is_ready)) = stack.pop() {
            if made.contains_key(&expr) {
                continue;
            }
            let is_load = self.body.kind(expr) == Kind::LOAD;
            let operands: Vec<Expr> = match is_load {
                true => Vec::new(),
                false => self.body.operands(expr).iter().collect(),
            };
            if !is_ready && !operands.is_empty() {
                stack.push((expr, true));
                stack.extend(operands.into_iter().map(|operand| (operand, false)));
                continue;
            }
            let node = self.node(this, expr, &|operand| made[&operand])?;
            if this.value.len() == MAX_NODES {
                return Err(format!("what it assigns has more than {MAX_NODES} nodes"));
            }
            made.insert(expr, this.value.len());
            this.value.push(node);
        }
        Ok(())
    }

    fn node(
        &mut self,
        this: &mut TensorIntrinsic,
        expr: Expr,
        made: &dyn Fn(Expr) -> usize,
    ) -> std::result::Result<Node, String> {
        let body = self.body;
        let dtype = body.scalar_ty(expr).map(|(dtype, _)| dtype).unwrap_or(DType::I64);
        Ok(match body.view(expr) {
            View::Load { buffer, indices } => {
                let Some(operand) = self.params.iter().position(|&param| param == buffer) else {
                    return Err("it reads what is no operand".to_owned());
                };
                self.place(this, operand, &indices.to_vec())?;
                Node::Element(operand)
            }
            View::Int(value) => Node::Int(dtype, value),
            View::Float(value) => Node::Float(dtype, value.to_bits()),
            View::Binary { op, a, b } => Node::Binary(op, made(a), made(b)),
            View::Cast { value } => Node::Cast(dtype, made(value)),
            View::Select { cond, then, otherwise } => {
                Node::Select(made(cond), made(then), made(otherwise))
            }
            View::Intrinsic { name, args } => {
                Node::Function(body.terms().str(name).to_owned(), args.iter().map(made).collect())
            }
            _ => return Err(format!("it assigns a {}", body.kind(expr).name())),
        })
    }
}

/// Compares what is assigned. It calls itself as deep as the description is, which [`MAX_NODES`] bounds.
struct Unifying<'a> {
    intrinsic: &'a TensorIntrinsic,
    body: BodyView<'a>,
    follow: &'a dyn Fn(Expr) -> Expr,
}

type Found = Vec<Option<TileElement>>;

impl Unifying<'_> {
    fn unify(&self, at: usize, expr: Expr, found: &mut Found) -> std::result::Result<(), String> {
        let expr = (self.follow)(expr);
        let body = self.body;
        let dtype = body.scalar_ty(expr).map(|(dtype, _)| dtype);
        match (&self.intrinsic.value[at], body.view(expr)) {
            (&Node::Element(operand), View::Load { buffer, indices }) => {
                self.element(operand, TileElement { buffer, indices: indices.to_vec() }, found)
            }
            (&Node::Int(of, wanted), View::Int(value)) if Some(of) == dtype && wanted == value => {
                Ok(())
            }
            (&Node::Float(of, wanted), View::Float(value))
                if Some(of) == dtype && wanted == value.to_bits() =>
            {
                Ok(())
            }
            (&Node::Binary(wanted, a, b), View::Binary { op, a: left, b: right })
                if wanted == op =>
            {
                self.binary(op, [a, b], [left, right], found)
            }
            (&Node::Cast(of, value), View::Cast { value: inside }) if Some(of) == dtype => {
                self.unify(value, inside, found)
            }
            (&Node::Select(cond, then, other), View::Select { cond: c, then: t, otherwise }) => {
                self.all(&[cond, then, other], &[c, t, otherwise], found)
            }
            (Node::Function(wanted, args), View::Intrinsic { name, args: given })
                if body.terms().str(name) == wanted && args.len() == given.len() =>
            {
                self.all(args, &given.to_vec(), found)
            }
            (wanted, _) => {
                let (wanted, is) = (self.what(wanted), body.kind(expr).name());
                let dtype = dtype.map_or(String::new(), |dtype| format!(" of {dtype}"));
                Err(format!("where it computes {wanted}, there is a {is}{dtype}"))
            }
        }
    }

    fn binary(
        &self,
        op: BinaryOp,
        wanted: [usize; 2],
        given: [Expr; 2],
        found: &mut Found,
    ) -> std::result::Result<(), String> {
        let before = found.clone();
        let straight = self.all(&wanted, &given, found);
        let commutes = matches!(op, BinaryOp::Add | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max);
        if straight.is_ok() || !commutes {
            return straight;
        }
        *found = before;
        let swapped = [given[1], given[0]];
        self.all(&wanted, &swapped, found).or(straight)
    }

    fn all(
        &self,
        wanted: &[usize],
        given: &[Expr],
        found: &mut Found,
    ) -> std::result::Result<(), String> {
        wanted.iter().zip(given).try_for_each(|(&at, &expr)| self.unify(at, expr, found))
    }

    fn element(
        &self,
        operand: usize,
        element: TileElement,
        found: &mut Found,
    ) -> std::result::Result<(), String> {
        let TileOperand { name, dtype, .. } = &self.intrinsic.operands[operand];
        let is = dtype_of(self.body, element.buffer);
        if is != Some(*dtype) {
            let is = is.map_or_else(|| "nothing".to_owned(), |is| is.to_string());
            return Err(format!("`{name}` is {dtype}, and there is {is}"));
        }
        match &found[operand] {
            None => found[operand] = Some(element),
            Some(first) => {
                let indices = first.indices.iter().zip(&element.indices);
                let is_same = first.buffer == element.buffer
                    && first.indices.len() == element.indices.len()
                    && indices.into_iter().all(|(&a, &b)| is_same(self.body, a, b));
                if !is_same {
                    return Err(format!("`{name}` is not one element there"));
                }
            }
        }
        Ok(())
    }

    fn what(&self, node: &Node) -> String {
        match node {
            Node::Element(operand) => {
                format!("an element of `{}`", self.intrinsic.operands[*operand].name)
            }
            Node::Int(dtype, value) => format!("{value} of {dtype}"),
            Node::Float(dtype, bits) => format!("{} of {dtype}", f64::from_bits(*bits)),
            Node::Binary(op, ..) => format!("`{}`", op.text()),
            Node::Cast(dtype, _) => format!("a conversion to {dtype}"),
            Node::Select(..) => "a choice".to_owned(),
            Node::Function(name, _) => format!("`{name}`"),
        }
    }
}

/// How much an index grows in a step of the loop over `var`; none where that is no constant.
pub fn step_of(
    body: BodyView<'_>,
    index: Expr,
    var: Expr,
    follow: &dyn Fn(Expr) -> Expr,
) -> Option<i64> {
    // The step of each node that was looked at.
    let mut steps: HashMap<Expr, Option<i64>> = HashMap::new();
    let index = follow(index);
    let mut stack = vec![(index, false)];
    while let Some((expr, is_ready)) = stack.pop() {
        if steps.contains_key(&expr) {
            continue;
        }
        let operands: Vec<Expr> = body.operands(expr).iter().map(follow).collect();
        if !is_ready && !operands.is_empty() {
            stack.push((expr, true));
            stack.extend(operands.into_iter().map(|operand| (operand, false)));
            continue;
        }
        let of = |expr: Expr| steps.get(&follow(expr)).copied().flatten();
        let step = match body.view(expr) {
            _ if expr == var => Some(1),
            View::Binary { op: BinaryOp::Add, a, b } => of(a).zip(of(b)).map(|(a, b)| a + b),
            View::Binary { op: BinaryOp::Sub, a, b } => of(a).zip(of(b)).map(|(a, b)| a - b),
            View::Binary { op: BinaryOp::Mul, a, b } => {
                match (body.view(follow(a)), body.view(follow(b))) {
                    (_, View::Int(by)) => of(a).and_then(|step| step.checked_mul(by)),
                    (View::Int(by), _) => of(b).and_then(|step| step.checked_mul(by)),
                    _ => (of(a) == Some(0) && of(b) == Some(0)).then_some(0),
                }
            }
            _ => operands.iter().all(|&operand| of(operand) == Some(0)).then_some(0),
        };
        steps.insert(expr, step);
    }
    steps[&index]
}

/// Whether two scalars are written in the same way.
fn is_same(body: BodyView<'_>, a: Expr, b: Expr) -> bool {
    let mut seen: std::collections::HashSet<[Expr; 2]> = std::collections::HashSet::new();
    let mut stack = vec![[a, b]];
    while let Some([a, b]) = stack.pop() {
        if a == b || !seen.insert([a, b]) {
            continue;
        }
        let (x, y) = (body.raw_node(a), body.raw_node(b));
        let is_leaf_of_its_own = matches!(body.kind(a), Kind::VAR | Kind::BUFFER);
        let same = (x.kind, x.data, x.aux, x.ty, x.len) == (y.kind, y.data, y.aux, y.ty, y.len);
        if !same || is_leaf_of_its_own {
            return false;
        }
        stack.extend(body.operands(a).iter().zip(body.operands(b).iter()).map(|(a, b)| [a, b]));
    }
    true
}
