//! The statements of a program as a tree, which primitives edit.
//!
//! Statements are numbered and know what is around them; a number that was given out stays good for as long as the statement
//! is there. Scalars, and what they are made of, are nodes of the transaction that writes the program back.

use rustc_hash::FxHashMap as HashMap;
use std::sync::Arc;

use tenon_plugin_api::ir::{Attrs, BodyView, Expr, LoopKind, Symbol, Term, TermView, View, Walk};

/// A statement of a [`Tree`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Id(pub(crate) u32);

/// What a statement is.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    For(For),
    Block(BlockNode),
    Seq(Vec<Id>),
    If {
        cond: Expr,
        then: Id,
        otherwise: Option<Id>,
    },
    Alloc(Expr),
    Let {
        var: Expr,
        value: Expr,
    },
    Store {
        buffer: Expr,
        value: Expr,
        indices: Vec<Expr>,
    },
    Evaluate(Expr),
    /// It was taken away.
    Gone,
}

impl Node {
    /// The scalars that it computes itself, in order.
    pub(crate) fn scalars(&self) -> Vec<Expr> {
        match self {
            Node::For(each) => vec![each.min, each.extent],
            Node::Block(block) => {
                let bindings = block.iters.iter().map(|iter| iter.binding);
                block.predicate.into_iter().chain(bindings).collect()
            }
            Node::If { cond, .. } => vec![*cond],
            Node::Let { value, .. } | Node::Evaluate(value) => vec![*value],
            Node::Store { value, indices, .. } => [&[*value], indices.as_slice()].concat(),
            Node::Seq(_) | Node::Alloc(_) | Node::Gone => Vec::new(),
        }
    }
}

/// A loop.
#[derive(Clone, Debug)]
pub(crate) struct For {
    pub(crate) var: Expr,
    pub(crate) min: Expr,
    pub(crate) extent: Expr,
    pub(crate) kind: LoopKind,
    pub(crate) thread: Symbol,
    pub(crate) attrs: Attrs,
    pub(crate) body: Id,
}

/// A block.
#[derive(Clone, Debug)]
pub(crate) struct BlockNode {
    pub(crate) name: Symbol,
    pub(crate) iters: Vec<Iter>,
    pub(crate) predicate: Option<Expr>,
    pub(crate) attrs: Attrs,
    pub(crate) init: Option<Id>,
    pub(crate) body: Id,
}

/// An iterator of a block: it goes through `extent` values from `min` on, and is `binding` where the block stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Iter {
    pub(crate) var: Expr,
    pub(crate) kind: Term,
    pub(crate) binding: Expr,
    pub(crate) min: Expr,
    pub(crate) extent: Expr,
}

/// Statements by their numbers. Copies share those that neither has changed: there is one before each primitive, to go back to.
#[derive(Clone)]
pub(crate) struct Tree {
    nodes: Vec<Arc<Node>>,
    parents: Vec<Option<Id>>,
    pub(crate) root: Id,
}

impl Tree {
    /// The statements of `root`, or what cannot be read and why. `domain` tells the range of a binding whose block says none.
    pub(crate) fn read(
        body: BodyView<'_>,
        root: Expr,
        mut domain: impl FnMut(Expr) -> Option<[Expr; 2]>,
    ) -> Result<Self, (Expr, &'static str)> {
        let mut tree = Self { nodes: Vec::new(), parents: Vec::new(), root: Id(0) };
        let mut made: HashMap<Expr, Id> = HashMap::default();
        for step in body.walk(root) {
            let Walk::Leave(stmt) = step else { continue };
            let node = read_node(body, stmt, &made, &mut domain)?;
            let id = tree.add(node);
            if tree.children(id).iter().any(|&child| tree.parents[child.0 as usize].is_some()) {
                return Err((stmt, "a statement inside of it stands in several places"));
            }
            tree.adopt(id);
            made.insert(stmt, id);
        }
        tree.root = made[&root];
        Ok(tree)
    }

    pub(crate) fn get(&self, id: Id) -> &Node {
        &self.nodes[id.0 as usize]
    }

    pub(crate) fn get_mut(&mut self, id: Id) -> &mut Node {
        Arc::make_mut(&mut self.nodes[id.0 as usize])
    }

    pub(crate) fn as_for(&self, id: Id) -> Option<&For> {
        match self.get(id) {
            Node::For(node) => Some(node),
            _ => None,
        }
    }

    pub(crate) fn for_mut(&mut self, id: Id) -> &mut For {
        match self.get_mut(id) {
            Node::For(node) => node,
            _ => panic!("statement {} is no loop", id.0),
        }
    }

    pub(crate) fn as_block(&self, id: Id) -> Option<&BlockNode> {
        match self.get(id) {
            Node::Block(node) => Some(node),
            _ => None,
        }
    }

    pub(crate) fn block_mut(&mut self, id: Id) -> &mut BlockNode {
        match self.get_mut(id) {
            Node::Block(node) => node,
            _ => panic!("statement {} is no block", id.0),
        }
    }

    /// A new statement, nowhere yet. Those inside it are taken from where they are by [`Tree::adopt`].
    pub(crate) fn add(&mut self, node: Node) -> Id {
        let id = Id(self.nodes.len() as u32);
        self.nodes.push(Arc::new(node));
        self.parents.push(None);
        id
    }

    /// A new statement around those inside it.
    pub(crate) fn make(&mut self, node: Node) -> Id {
        let id = self.add(node);
        self.adopt(id);
        id
    }

    /// Says of the statements directly inside `id` that it is around them.
    pub(crate) fn adopt(&mut self, id: Id) {
        for child in self.children(id) {
            self.parents[child.0 as usize] = Some(id);
        }
    }

    pub(crate) fn parent(&self, id: Id) -> Option<Id> {
        self.parents[id.0 as usize]
    }

    /// What is around a statement, from the inside out.
    pub(crate) fn ancestors(&self, id: Id) -> impl Iterator<Item = Id> {
        std::iter::successors(self.parent(id), |&id| self.parent(id))
    }

    pub(crate) fn is_inside(&self, id: Id, outer: Id) -> bool {
        id == outer || self.ancestors(id).any(|ancestor| ancestor == outer)
    }

    /// The statements directly inside.
    pub(crate) fn children(&self, id: Id) -> Vec<Id> {
        match self.get(id) {
            Node::For(node) => vec![node.body],
            Node::Block(node) => node.init.into_iter().chain([node.body]).collect(),
            Node::Seq(stmts) => stmts.clone(),
            Node::If { then, otherwise, .. } => [*then].into_iter().chain(*otherwise).collect(),
            _ => Vec::new(),
        }
    }

    /// A statement and all inside it, in the order in which they begin.
    pub(crate) fn walk(&self, id: Id) -> Vec<Id> {
        let (mut order, mut stack) = (Vec::new(), vec![id]);
        while let Some(id) = stack.pop() {
            order.push(id);
            stack.extend(self.children(id).into_iter().rev());
        }
        order
    }

    /// Puts a statement in the place of another, which is nowhere then.
    pub(crate) fn replace(&mut self, old: Id, new: Id) {
        let parent = self.parents[old.0 as usize].take();
        self.parents[new.0 as usize] = parent;
        let Some(parent) = parent else {
            self.root = new;
            return;
        };
        let swap = |place: &mut Id| {
            if *place == old {
                *place = new;
            }
        };
        match self.get_mut(parent) {
            Node::For(node) => swap(&mut node.body),
            Node::Block(node) => {
                node.init.iter_mut().for_each(swap);
                swap(&mut node.body);
            }
            Node::Seq(stmts) => stmts.iter_mut().for_each(swap),
            Node::If { then, otherwise, .. } => {
                swap(then);
                otherwise.iter_mut().for_each(swap);
            }
            _ => {}
        }
    }

    /// Puts statements before, or behind, another one.
    pub(crate) fn insert(&mut self, at: Id, is_behind: bool, new: Vec<Id>) {
        let parent = self.parent(at);
        if let Some(parent) = parent
            && let Node::Seq(stmts) = self.get_mut(parent)
        {
            let place = stmts.iter().position(|&stmt| stmt == at).unwrap_or(0) + is_behind as usize;
            stmts.splice(place..place, new);
            self.adopt(parent);
            return;
        }
        let hole = self.add(Node::Seq(Vec::new()));
        self.replace(at, hole);
        let stmts = match is_behind {
            true => [at].into_iter().chain(new).collect(),
            false => new.into_iter().chain([at]).collect(),
        };
        *self.get_mut(hole) = Node::Seq(stmts);
        self.adopt(hole);
    }

    /// Takes a statement away, and what is around it and holds nothing else.
    pub(crate) fn remove(&mut self, id: Id) {
        let mut id = id;
        loop {
            let parent = self.parents[id.0 as usize].take();
            self.bury(id);
            let Some(parent) = parent else {
                self.root = self.add(Node::Seq(Vec::new()));
                return;
            };
            match self.get_mut(parent) {
                Node::Seq(stmts) if stmts.len() > 1 => {
                    stmts.retain(|&stmt| stmt != id);
                    if let &mut [only] = stmts.as_mut_slice() {
                        self.replace(parent, only);
                        *self.get_mut(parent) = Node::Gone;
                    }
                    return;
                }
                Node::Block(_) | Node::If { otherwise: Some(_), .. } => {
                    let nothing = self.add(Node::Seq(Vec::new()));
                    self.parents[id.0 as usize] = Some(parent);
                    self.replace(id, nothing);
                    return;
                }
                _ => id = parent,
            }
        }
    }

    fn bury(&mut self, id: Id) {
        for id in self.walk(id) {
            *self.get_mut(id) = Node::Gone;
        }
    }

    /// The loops around a statement up to the block around it, outermost first.
    pub(crate) fn loops_around(&self, id: Id) -> Vec<Id> {
        let inside = self.ancestors(id).take_while(|&id| self.as_block(id).is_none());
        let mut loops: Vec<Id> = inside.filter(|&id| self.as_for(id).is_some()).collect();
        loops.reverse();
        loops
    }

    /// The block around a statement; none when it stands in the program itself.
    pub(crate) fn scope(&self, id: Id) -> Option<Id> {
        self.ancestors(id).find(|&id| self.as_block(id).is_some())
    }

    /// The blocks below a statement that are not in one another, in order. Of a block those in its body.
    pub(crate) fn blocks_below(&self, id: Id) -> Vec<Id> {
        let (mut blocks, mut stack) = (Vec::new(), self.children(id));
        stack.reverse();
        while let Some(id) = stack.pop() {
            match self.get(id) {
                Node::Block(_) => blocks.push(id),
                _ => stack.extend(self.children(id).into_iter().rev()),
            }
        }
        blocks
    }

    /// The blocks of a scope, in order.
    pub(crate) fn blocks_of(&self, scope: Option<Id>) -> Vec<Id> {
        match scope {
            Some(block) => self.blocks_below(block),
            None if self.as_block(self.root).is_some() => vec![self.root],
            None => self.blocks_below(self.root),
        }
    }

    /// All statements.
    pub(crate) fn all(&self) -> Vec<Id> {
        self.walk(self.root)
    }

    /// The statement of the list or body `outer` that `id` is or stands in.
    pub(crate) fn child_towards(&self, outer: Id, id: Id) -> Option<Id> {
        let mut path = vec![id];
        path.extend(self.ancestors(id));
        let at = path.iter().position(|&step| step == outer)?;
        path.get(at.checked_sub(1)?).copied()
    }
}

fn read_node(
    body: BodyView<'_>,
    stmt: Expr,
    made: &HashMap<Expr, Id>,
    domain: &mut impl FnMut(Expr) -> Option<[Expr; 2]>,
) -> Result<Node, (Expr, &'static str)> {
    Ok(match body.view(stmt) {
        View::For { var, min, extent, body, kind, thread, attrs } => {
            Node::For(For { var, min, extent, kind, thread, attrs, body: made[&body] })
        }
        View::Block(block) => {
            let mut iters = Vec::new();
            for iter in block.iterators() {
                let range = iter.domain.or_else(|| domain(iter.binding));
                let unknown =
                    (stmt, "an iterator has no domain, and its binding none that is known");
                let [min, extent] = range.ok_or(unknown)?;
                let (var, kind, binding) = (iter.var, iter.kind, iter.binding);
                iters.push(Iter { var, kind, binding, min, extent });
            }
            Node::Block(BlockNode {
                name: block.name,
                iters,
                predicate: block.predicate,
                attrs: block.attrs,
                init: block.init.map(|init| made[&init]),
                body: made[&block.body],
            })
        }
        View::Seq(stmts) => Node::Seq(stmts.iter().map(|stmt| made[&stmt]).collect()),
        View::IfStmt { cond, then, otherwise } => Node::If {
            cond,
            then: made[&then],
            otherwise: otherwise.map(|otherwise| made[&otherwise]),
        },
        View::Alloc { buffer } => Node::Alloc(buffer),
        View::LetStmt { var, value } => Node::Let { var, value },
        View::Store { buffer, value, indices } => {
            Node::Store { buffer, value, indices: indices.to_vec() }
        }
        View::Evaluate { value } => Node::Evaluate(value),
        _ => return Err((stmt, "this statement is not known here")),
    })
}

/// Whether a kind of an iterator is that of a reduction.
pub(crate) fn is_reduce(body: BodyView<'_>, kind: Term) -> bool {
    body.terms().view(kind) == TermView::Str("reduce")
}

/// Whether a kind of an iterator is spatial.
pub(crate) fn is_spatial(body: BodyView<'_>, kind: Term) -> bool {
    body.terms().view(kind) == TermView::Str("spatial")
}

impl Tree {
    /// The body of a loop.
    pub(crate) fn body_of(&self, id: Id) -> Id {
        self.as_for(id).map_or(id, |each| each.body)
    }
}
