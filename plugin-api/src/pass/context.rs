//! The context of one run of a pass.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::abi::guard::guard;
use crate::abi::host::Host;
use crate::ir::{
    AttrValue, Attrs, AttrsView, Context, Symbol, Term, TermKind, TermView, Terms, Type,
};
use crate::op::{OpEffect, OpPattern};
use crate::pass::{Function, Module, PassError, Result};
use crate::program::TARGET;

/// What a pass knows of its run: options, target, operators, and the host's services. It may be shared
/// with threads.
pub struct PassContext {
    host: Host,
    /// Operators that were asked for: the symbol above the host's answer, at the place that the symbol leads to.
    known_ops: [AtomicU64; KNOWN_OPS],
}

const KNOWN_OPS: usize = 64;

/// What is known of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpInfo {
    /// Whether a call may be merged and dropped. What it may be moved over says [`crate::pass::Effects`].
    pub is_pure: bool,
    /// What a call does besides computing.
    pub effect: OpEffect,
    /// How it fuses.
    pub pattern: OpPattern,
}

impl OpInfo {
    /// What the host answered; `None` for an operator that it does not know.
    pub fn from_code(code: u32) -> Option<Self> {
        let effect = OpEffect::from_code(code);
        let pattern = OpPattern::from_code((code >> 8) as i64);
        (code & 1 == 1).then_some(Self { is_pure: effect.is_pure(), effect, pattern })
    }
}

impl PassContext {
    pub(crate) fn new(host: Host) -> Self {
        Self { host, known_ops: [const { AtomicU64::new(0) }; KNOWN_OPS] }
    }

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// The options of this run, as the pass declares them, with defaults filled in.
    pub fn options(&self) -> AttrsView<'_> {
        self.host.terms().attrs(Attrs(self.host.options().0))
    }

    /// The target: in a pass over functions or programs that of the one at hand, in others the module's. docs/targets.md lists its keys.
    pub fn target(&self) -> AttrsView<'_> {
        self.host.terms().attrs(Attrs(self.host.target().0))
    }

    /// The target as a dictionary.
    pub fn target_attrs(&self) -> Attrs {
        Attrs(self.host.target().0)
    }

    /// What the code of a function is for, as a dictionary: the target that it names, or the module's.
    pub fn target_of(&self, func: &Function) -> Attrs {
        Attrs(self.host.target_of(&func.0).0)
    }

    /// Attributes of a function that computes a part of `func`, whose code is for the same: they say the target that `func` names.
    pub fn with_target_of(&self, attrs: Attrs, func: &Function) -> Attrs {
        match self.terms().attrs(func.attrs()).term(TARGET) {
            Some(name) => self.with_attr(attrs, TARGET, AttrValue::Term(name)),
            None => attrs,
        }
    }

    /// Whether the processor of [`Self::target`] has a feature, by LLVM's name for it: `avx512f`.
    pub fn has_feature(&self, name: &str) -> bool {
        let Some(TermView::List(features)) = self.target().get("features") else { return false };
        features.iter().any(|&feature| self.terms().view(feature) == TermView::Str(name))
    }

    /// Whether floats are to be computed as the model says it: no pass may change how a result is rounded.
    pub fn keeps_floats(&self) -> bool {
        self.target().str("float") == Some("strict")
    }

    /// Tells the user something worth knowing that is no error.
    pub fn note(&self, text: &str) {
        self.host.report(3, text);
    }

    /// Warns the user.
    pub fn warn(&self, text: &str) {
        self.host.report(2, text);
    }

    /// Whether the run was cancelled; a long pass asks now and then and returns
    /// [`PassError::cancelled`].
    pub fn is_cancelled(&self) -> bool {
        self.host.is_cancelled()
    }

    /// What `work` gives for each index below `count`, in their order, found out by the host's threads. It may be called
    /// in `work` again. Which thread does what differs from run to run, so `work` is to give the same whoever calls it; it
    /// holds no lock while it calls the host.
    ///
    /// Fails when the pass is to stop, and with the panic of the least index that panics. Needs a host of 1.1.
    pub fn parallel_for<T: Send>(
        &self,
        count: usize,
        work: impl Fn(usize) -> T + Sync,
    ) -> Result<Vec<T>> {
        // Nothing panics while a lock is held.
        let results: Vec<Mutex<Option<_>>> = (0..count).map(|_| Mutex::default()).collect();
        let item = |index: usize| {
            let Some(place) = results.get(index).filter(|_| !self.is_cancelled()) else { return };
            let result = guard(|| work(index)).map_err(PassError::panicked);
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        };
        self.host.parallel_for(count, &item).map_err(PassError::new)?;
        // What is missing was not begun.
        let result = |place: Mutex<Option<Result<T>>>| {
            let result = place.into_inner().unwrap_or_else(PoisonError::into_inner);
            result.unwrap_or_else(|| Err(PassError::cancelled()))
        };
        results.into_iter().map(result).collect()
    }

    /// What is known of an operator; `None` for one that the host does not know.
    pub fn op_info(&self, name: &str) -> Option<OpInfo> {
        self.op_info_of(self.host.symbol(name))
    }

    /// As [`PassContext::op_info`], by the operator's symbol. Asking again costs next to nothing.
    pub fn op_info_of(&self, op: Symbol) -> Option<OpInfo> {
        let place = &self.known_ops[op.0 as usize % KNOWN_OPS];
        let known = place.load(Ordering::Relaxed);
        let code = match known >> 32 == op.0 as u64 {
            true => known as u32,
            false => {
                let code = self.host.op_info(op);
                place.store((op.0 as u64) << 32 | code as u64, Ordering::Relaxed);
                code
            }
        };
        OpInfo::from_code(code)
    }

    /// Whether a call of this operator has no effect besides its result; an unknown one may have any. What it may be
    /// moved over says [`crate::pass::Effects`].
    pub fn is_pure(&self, op: &str) -> bool {
        self.is_pure_op(self.host.symbol(op))
    }

    /// As [`PassContext::is_pure`], by the operator's symbol.
    pub fn is_pure_op(&self, op: Symbol) -> bool {
        self.op_info_of(op).is_some_and(|info| info.is_pure)
    }

    /// The tensor program that computes a call of an operator: inputs first (tuples flattened), outputs
    /// last, private to the module it is put into. `target` is what it is for, as [`PassContext::target_of`] gives it of the
    /// function that has the call. An error when the operator has none for these types.
    pub fn legalize(
        &self,
        op: Symbol,
        attrs: Attrs,
        args: &[Type],
        result: Type,
        target: Attrs,
    ) -> Result<Function> {
        let args: Vec<u32> = args.iter().map(|ty| ty.0).collect();
        self.host
            .legalize(op, Term(attrs.0), &args, result.into(), Term(target.0))
            .map(Function)
            .map_err(PassError::new)
    }

    /// Has schedules of the tensor programs of `module` measured that say in the attribute `task` what they are known by, and what is found
    /// appended to a database. `how` says which file that is, and how much is measured; docs/tuning.md lists its keys, and those of
    /// the answer. `None` where the module is that of a candidate: what is measured is compiled as it stands.
    ///
    /// It takes as long as measuring does, and fails as a pass that is cancelled when it should stop. Needs a host of 1.1.
    pub fn measure_schedules(&self, module: &Module, how: Attrs) -> Result<Option<Attrs>> {
        match self.host.measure_schedules(module.handle(), Term(how.0)) {
            Ok(answer) => Ok(answer.map(|answer| Attrs(answer.0))),
            Err(_) if self.is_cancelled() => Err(PassError::cancelled()),
            Err(why) => Err(PassError::new(why)),
        }
    }

    /// The patterns of what a code generator takes, each `name = pattern`; see [`crate::pattern`].
    pub fn codegen_patterns(&self, generator: &str) -> Result<Vec<String>> {
        let list = self.host.codegen_patterns(self.symbol(generator)).map_err(PassError::new)?;
        let text = |&item: &Term| self.terms().str(item).to_owned();
        Ok(self.terms().children(list).iter().map(text).collect())
    }

    /// Whether a code generator takes what one of its patterns matched, as a function.
    pub fn is_accepted(&self, generator: &str, function: &Function) -> Result<bool> {
        self.host.accepts(self.symbol(generator), &function.0).map_err(PassError::new)
    }

    /// Has a code generator compile the functions `names` of `module`: for each a tensor program, private to
    /// the module it is put into, that calls its code. Parameters and results are tensors of known size, the
    /// results in the order of the fields of a tuple.
    pub fn generate_code(
        &self,
        generator: &str,
        module: &Module,
        names: &[Symbol],
    ) -> Result<Vec<Function>> {
        let ids: Vec<u32> = names.iter().map(|name| name.0).collect();
        let programs = self.host.generate(self.symbol(generator), module.handle(), &ids);
        Ok(programs.map_err(PassError::new)?.into_iter().map(Function).collect())
    }
}

impl Context for PassContext {
    fn terms(&self) -> Terms<'_> {
        self.host.terms()
    }

    fn intern(&self, kind: TermKind, flags: u16, bits: u64, children: &[Term]) -> Term {
        self.host.intern(kind, flags, bits, children)
    }

    fn symbol(&self, text: &str) -> Symbol {
        self.host.symbol(text)
    }
}
