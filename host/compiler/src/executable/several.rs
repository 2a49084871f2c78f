//! One executable of the code for several processors.
//!
//! ```text
//! for x86-64-v4: tenon_main, kernel0, constant0        tenon_main, kernel0, constant0          one function of the library,
//! for x86-64-v2: tenon_main, kernel0, constant0   =>   tenon_main.p1, kernel0.p1        ─►     which asks the processor
//!                the same bytes in both                constant0.p1 is constant0               and goes to one of both
//! ```
//!
//! To callers it is one model. What they have to know of memory holds whichever code runs: the workspace is that of the code that
//! needs most.

use std::collections::HashMap;
use std::sync::Arc;

use crate::backend::{ConstantPlaces, ConstantTable, FrontProcessor};
use crate::object::{constants::ConstantArray, externals::Externals, with_suffix};
use crate::runtime::cpu::needs_of;
use crate::runtime::signature::Signature;
use crate::target::{Target, Targets, asked_features, cpu_needs};

use super::compile::{Executable, MachineCode};
use super::error::CompileError;

impl Executable {
    /// The code of one module for several processors, each made by [`Executable::compile`], in the order of the targets.
    ///
    /// # Errors
    /// When there is none, when the targets cannot be those of one library, or when what was compiled are not the same functions.
    pub fn joined(all: Vec<Executable>) -> Result<Executable, CompileError> {
        let targets = all.iter().flat_map(|it| &it.code).map(|code| code.target.clone());
        let targets = Targets::of(targets.collect())?;
        let mut ordered = all;
        let place = |executable: &Executable| {
            let own = &executable.code[0].target;
            targets.all().iter().position(|target| target == own)
        };
        ordered.sort_by_key(place);
        let mut rest = ordered.into_iter();
        let Some(mut joined) = rest.next() else { return Err(CompileError::NothingToJoin) };
        for other in rest {
            joined.join(other)?;
        }
        if joined.code.len() > 1 {
            for function in &mut joined.info.functions {
                function.target = targets.to_string();
            }
        }
        Ok(joined)
    }

    /// Adds code for another processor.
    fn join(&mut self, other: Executable) -> Result<(), CompileError> {
        let (own, others) = (&mut self.info.functions, &other.info.functions);
        if own.len() != others.len() || self.given != other.given || self.prefix != other.prefix {
            return Err(self.differ(&other, "other functions"));
        }
        // What one code numbers may be another check of the other one.
        if own.first().map(|it| &it.checks) != others.first().map(|it| &it.checks) {
            own.iter_mut().for_each(|function| function.checks = Arc::default());
        }
        for at in 0..own.len() {
            let signature = merged(&self.info.functions[at], &other.info.functions[at]);
            let signature = signature.map_err(|what| self.differ(&other, what))?;
            self.info.functions[at] = signature;
        }
        self.externals.names.extend(other.externals.names);
        self.externals.names.sort();
        self.externals.names.dedup();
        self.info.processors.extend(other.info.processors);
        for code in other.code {
            let suffix = format!(".p{}", self.code.len());
            self.code.push(code.renamed(&suffix, &self.externals)?);
        }
        Ok(())
    }

    fn differ(&self, other: &Executable, what: &'static str) -> CompileError {
        let [first, second] = [self, other].map(|it| it.code[0].target.to_string());
        CompileError::Differ { what, first, second }
    }

    /// The code that runs on this machine.
    pub(super) fn here(&self) -> Result<&MachineCode, CompileError> {
        let targets = Targets::of(self.code.iter().map(|code| code.target.clone()).collect())?;
        let here = targets.here()?;
        let code = self.code.iter().find(|code| code.target == *here);
        Ok(code.unwrap_or(&self.code[0]))
    }

    /// What is asked of the processor, where not every one runs the code.
    pub(super) fn processors(&self) -> Result<Vec<FrontProcessor>, CompileError> {
        if let [code] = &self.code[..] {
            // It was compiled for this machine, as a rule, of which not all has a name.
            let needs = needs_of(asked_features(&code.target));
            let processor = FrontProcessor { target: code.target.to_string(), needs };
            return Ok(Some(processor).filter(|it| !it.needs.is_empty()).into_iter().collect());
        }
        let processor = |code: &MachineCode| {
            let needs = cpu_needs(&code.target)?;
            Ok(FrontProcessor { target: code.target.to_string(), needs })
        };
        self.code.iter().map(processor).collect()
    }

    /// Any processor of the architecture.
    pub(super) fn baseline(&self) -> Result<Target, CompileError> {
        Ok(Target::parse(self.code[0].target.triple())?)
    }

    /// All constants, those that are equal together.
    pub(super) fn equal_constants(&self) -> Vec<EqualConstants<'_>> {
        let mut all: Vec<EqualConstants<'_>> = Vec::new();
        let mut known: HashMap<&[u8], usize> = HashMap::new();
        for (at, code) in self.code.iter().enumerate() {
            for (symbol, bytes) in &code.constants {
                let bytes = &bytes[..];
                // The code for one target reads each constant once.
                match known.get(bytes).filter(|_| at > 0) {
                    Some(&place) => all[place].others.push(symbol),
                    None => {
                        if self.code.len() > 1 {
                            known.insert(bytes, all.len());
                        }
                        all.push(EqualConstants { symbol, others: Vec::new(), bytes });
                    }
                }
            }
        }
        all
    }
}

impl Executable {
    /// The tables of constants that lie in the library.
    pub(super) fn tables(&self) -> Vec<ConstantTable> {
        let table = |code: &MachineCode| {
            let symbols = code.constants.iter().map(|(symbol, _)| symbol.clone()).collect();
            let places = ConstantPlaces::Symbols(symbols);
            ConstantTable { symbol: code.table.clone(), places }
        };
        self.code.iter().map(table).filter(ConstantTable::has_any).collect()
    }

    /// The tables of constants that lie in a file, at these places.
    pub(super) fn tables_of_file(
        &self,
        constants: &[EqualConstants<'_>],
        places: &[u64],
    ) -> Vec<ConstantTable> {
        let mut by_symbol: HashMap<&str, u64> = HashMap::new();
        for (constant, &place) in constants.iter().zip(places) {
            let symbols = [constant.symbol].into_iter().chain(constant.others.iter().copied());
            by_symbol.extend(symbols.map(|symbol| (symbol, place)));
        }
        let table = |code: &MachineCode| {
            let places = code.constants.iter().map(|(symbol, _)| by_symbol[symbol.as_str()]);
            let places = ConstantPlaces::Offsets(places.collect());
            ConstantTable { symbol: code.table.clone(), places }
        };
        self.code.iter().map(table).filter(ConstantTable::has_any).collect()
    }
}

/// Constants of the same bytes.
pub(super) struct EqualConstants<'a> {
    symbol: &'a str,
    others: Vec<&'a str>,
    pub(super) bytes: &'a [u8],
}

impl EqualConstants<'_> {
    /// All of them as one array.
    pub(super) fn array(&self) -> ConstantArray<'_> {
        ConstantArray { others: &self.others, ..ConstantArray::new(self.symbol, self.bytes) }
    }
}

impl MachineCode {
    /// The same with a suffix behind all names that are linked.
    fn renamed(mut self, suffix: &str, externals: &Externals) -> Result<Self, CompileError> {
        for unit in &mut self.objects {
            unit.bytes = with_suffix(&unit.name, &unit.bytes, suffix, externals)?;
        }
        let names = self.names.iter_mut().flat_map(|it| [&mut it.run, &mut it.sizes]);
        let constants = self.constants.iter_mut().map(|(symbol, _)| symbol);
        let table = [&mut self.table].into_iter();
        names.chain(constants).chain(table).for_each(|name| name.push_str(suffix));
        Ok(self)
    }
}

/// What holds of a function whichever of two codes runs; or what is not the same in both.
fn merged(one: &Signature, other: &Signature) -> Result<Signature, &'static str> {
    // All are named, so that none that is new is forgotten.
    let Signature {
        tenon: _,
        function,
        symbol: _,
        target: _,
        workspace_size: _,
        most_workspace: _,
        ranges,
        inputs,
        outputs,
        found,
        arena,
        taken,
        in_place,
        grows,
        checks: _,
    } = other;
    let is_same = one.function == *function
        && one.inputs == *inputs
        && one.outputs == *outputs
        && one.found == *found
        && one.arena == *arena
        && one.taken == *taken
        && one.ranges == *ranges;
    if !is_same {
        return Err("other inputs and outputs");
    }
    let larger = |one: Option<u64>, other: Option<u64>| Some(one?.max(other?));
    let size = larger(one.workspace_size, other.workspace_size);
    let [one_most, other_most] = [one, other].map(|it| it.workspace_size.or(it.most_workspace));
    let mut merged = one.clone();
    merged.workspace_size = size;
    merged.most_workspace = larger(one_most, other_most).filter(|_| size.is_none());
    merged.in_place.retain(|pair| in_place.contains(pair));
    merged.grows.retain(|it| grows.contains(it) && merged.in_place.contains(&[it[0], it[1]]));
    Ok(merged)
}
