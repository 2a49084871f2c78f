//! Makes plans: of a pipeline's text, and of passes as values.

mod phases;
mod text;

use std::collections::{HashMap, HashSet};

use super::options::{self, Given, StepOption};
use super::order::Order;
use super::own::{self, OwnPasses};
use super::pass::{Body, GroupKind, Pass};
use super::pipeline::{Element, PassSpec};
use super::plan::{GroupStep, PassStep, Plan, PlanError, Reason, Step};
use super::requirements;
use super::settings::Settings;
use crate::diagnostics::{Diagnostic, Source};
use crate::registry::{
    LookupError, OptionRecord, OptionValue, PassId, PassKind, PipelineContent, Place, Registry, Set,
};
use crate::suggest::nearest;
pub(super) use text::Text;

/// The most elements that come out of named pipelines which were there before. Pipelines that hold others several
/// times grow with the power of their depth.
const MAX_REPEATED: usize = 100_000;

/// Makes the plan of a pipeline: a name of the registry's, or a textual pipeline.
pub fn plan(registry: &Registry, pipeline: &str) -> Result<Plan, PlanError> {
    plan_with(registry, pipeline, &Settings::default())
}

/// The same with values of options, above those of the registry and below those of the pipeline.
pub fn plan_with(
    registry: &Registry,
    pipeline: &str,
    settings: &Settings,
) -> Result<Plan, PlanError> {
    plan_with_own(registry, &own::NONE, pipeline, settings)
}

/// The same, where the pipeline may name passes of the program's own.
pub fn plan_with_own(
    registry: &Registry,
    own: &OwnPasses,
    pipeline: &str,
    settings: &Settings,
) -> Result<Plan, PlanError> {
    let mut planner = Planner::new(registry, own, settings);
    planner.elements(vec![Work::Text(Text::of_argument(pipeline))])?;
    Ok(planner.plan)
}

impl Plan {
    /// The plan of one pass as it is called: a group's own level and requirements are no matter, those of the
    /// passes in it are.
    pub fn of(registry: &Registry, pass: &Pass, settings: &Settings) -> Result<Plan, PlanError> {
        Plan::of_own(registry, &own::NONE, pass, settings)
    }

    /// The same, where passes may require those of the program's own by their names.
    pub fn of_own(
        registry: &Registry,
        own: &OwnPasses,
        pass: &Pass,
        settings: &Settings,
    ) -> Result<Plan, PlanError> {
        let source = Source::new(format!("the pass {}", pass.name()), pass.name());
        let place = Place::in_pipeline(&source, 0..pass.name().len());
        let mut planner = Planner::new(registry, own, settings);
        planner.value(pass, &place, Reason::Called)?;
        Ok(planner.plan)
    }
}

impl Pass {
    /// A pass of the registry's, by name or alias, with options or without: `acme.Fuse{depth=8}`.
    pub fn get(registry: &Registry, text: &str) -> Result<Pass, PlanError> {
        let source = Text::of_argument(text);
        match source.parse()?.0.as_slice() {
            [Element::Pass(spec)] => {
                let settings = Settings::default();
                let planner = Planner::new(registry, &own::NONE, &settings);
                let pass = planner.plugin(spec, &source)?;
                planner.settle(&pass)?;
                Ok(pass)
            }
            _ => Err(Diagnostic::error(format!("`{text}` does not name one pass")).into()),
        }
    }
}

/// The options of a pass when no pipeline sets any.
pub fn configured_options(registry: &Registry, id: PassId) -> Result<Vec<StepOption>, PlanError> {
    let record = registry.record(id);
    let pass = Pass::plugin(record, id, Vec::new());
    Planner::new(registry, &own::NONE, &Settings::default()).settle(&pass)
}

/// What is to be planned. Pipelines may stand in each other to any depth, so there is a list of work.
enum Work<'a> {
    Text(Text<'a>),
    Element(Text<'a>, Element),
    /// An element of the registry's list of a phase.
    Listed(Text<'a>, Element),
    Phase(&'a Set<String>),
    /// A named pipeline is through.
    Leave,
}

pub(super) struct Planner<'a> {
    pub(super) registry: &'a Registry,
    pub(super) own: &'a OwnPasses,
    settings: &'a Settings,
    pub(super) plan: Plan,
    /// The groups that are open, by their first steps, and where they begin.
    open: Vec<(usize, Place)>,
    /// The named pipelines that are open, each in the one before, and the same as a set: a chain may be long.
    inside: Vec<(String, Place)>,
    is_inside: HashSet<String>,
    /// Those that were opened, and the number of elements of those that were so before.
    opened: HashSet<String>,
    repeated: usize,
    order: Order,
    /// The passes that find their own place, by their phase; found when the first phase is planned.
    placed: Option<HashMap<String, Vec<(PassId, Place)>>>,
}

impl<'a> Planner<'a> {
    fn new(registry: &'a Registry, own: &'a OwnPasses, settings: &'a Settings) -> Self {
        let (plan, order) = (Plan::default(), Order::default());
        let (open, inside, is_inside) = (Vec::new(), Vec::new(), HashSet::new());
        let (opened, repeated, placed) = (HashSet::new(), 0, None);
        Self {
            registry,
            own,
            settings,
            plan,
            open,
            inside,
            is_inside,
            opened,
            repeated,
            order,
            placed,
        }
    }

    fn elements<'t>(&mut self, mut work: Vec<Work<'t>>) -> Result<(), PlanError>
    where
        'a: 't,
    {
        while let Some(item) = work.pop() {
            let is_listed = matches!(item, Work::Listed(..));
            let (text, element) = match item {
                Work::Text(text) => {
                    let elements = text.parse()?.0.into_iter().rev();
                    work.extend(elements.map(|element| Work::Element(text.clone(), element)));
                    continue;
                }
                Work::Phase(phase) => {
                    self.phase(&phase.value, &phase.place)?;
                    continue;
                }
                Work::Leave => {
                    let left = self.inside.pop();
                    left.inspect(|(name, _)| _ = self.is_inside.remove(name));
                    continue;
                }
                Work::Element(text, element) | Work::Listed(text, element) => (text, element),
            };
            match element {
                Element::Pass(spec) => {
                    let place = text.place(&spec.name.at);
                    if !is_listed && let Some(parts) = self.pipeline(&spec, &place)? {
                        work.extend(parts);
                        continue;
                    }
                    let reason = self.reason(&place, is_listed);
                    if let Some(pass) = self.own.find(&spec.name.text).filter(|_| !is_listed) {
                        if !spec.options.is_empty() {
                            let message = format!(
                                "`{}` is the program's own, and takes no options",
                                pass.name()
                            );
                            return Err(place.error(message, "").into());
                        }
                        self.value(pass, &place, reason)?;
                        continue;
                    }
                    let pass = self.plugin(&spec, &text)?;
                    requirements::plan(self, pass, &place, reason)?;
                }
                Element::Phase(phase) => self.phase(&phase.text, &text.place(&phase.at))?,
                Element::Enter(phase) => self.enter(&phase.text, &text.place(&phase.at))?,
                Element::Begin(kind) => {
                    let place = text.place(&kind.at);
                    let kind = match kind.text.as_str() {
                        "func" => GroupKind::Functions,
                        "fixpoint" => GroupKind::Fixpoint { max: GroupKind::ROUNDS },
                        "composite" => GroupKind::Composite,
                        _ => GroupKind::Sequence,
                    };
                    let reason = self.reason(&place, is_listed);
                    self.begin(Pass::group(kind, []), &place, reason)?;
                }
                Element::End(options) => self.end(text.given(&options))?,
            }
        }
        Ok(())
    }

    /// Why a pass that stands in a text runs.
    fn reason(&self, place: &Place, is_listed: bool) -> Reason {
        match self.open.last().map(|(begin, _)| self.plan.step(*begin)) {
            Some(group) if group.pass.group_kind() == Some(GroupKind::Composite) => {
                Reason::Pinned { of: group.name.clone() }
            }
            _ if is_listed => Reason::Listed(place.clone()),
            _ => Reason::Named(place.clone()),
        }
    }

    /// What a named pipeline consists of, the last of it first.
    fn pipeline(
        &mut self,
        spec: &PassSpec,
        place: &Place,
    ) -> Result<Option<Vec<Work<'a>>>, PlanError> {
        let name = &spec.name.text;
        let Some(config) = self.registry.config().pipelines.get(name) else { return Ok(None) };
        if !spec.options.is_empty() {
            // A pass may have the same name.
            return match self.registry.find(name) {
                Ok(_) => Ok(None),
                Err(_) => {
                    let message = format!("`{name}` is a pipeline, and takes no options");
                    Err(place.error(message, "").into())
                }
            };
        }
        if self.is_inside.contains(name) {
            let start = self.inside.iter().position(|(open, _)| open == name);
            let start = start.expect("the list has what the set has");
            let ring: Vec<&str> = self.inside[start..]
                .iter()
                .map(|(name, _)| name.as_str())
                .chain([&**name])
                .collect();
            let message = format!("pipelines hold each other: {}", ring.join(" holds "));
            let error = place.error(message, "");
            let inner = self.inside[start..].iter();
            let notes = inner.map(|(name, place)| format!("`{name}` is named in {place}"));
            return Err(notes.fold(error, Diagnostic::note).into());
        }
        let length = match &config.content {
            PipelineContent::Phases(all) | PipelineContent::Passes(all) => all.len(),
        };
        self.count(name, place, 1 + length)?;
        self.inside.push((name.clone(), place.clone()));
        self.is_inside.insert(name.clone());
        let mut parts = vec![Work::Leave];
        match &config.content {
            PipelineContent::Phases(phases) => parts.extend(phases.iter().rev().map(Work::Phase)),
            PipelineContent::Passes(passes) => {
                parts.extend(passes.iter().rev().map(|text| Work::Text(Text::of_file(text))));
            }
        }
        Ok(Some(parts))
    }

    /// Ends what holds itself so often that nobody sees its end.
    fn count(&mut self, name: &str, place: &Place, elements: usize) -> Result<(), PlanError> {
        if self.opened.insert(name.to_owned()) {
            return Ok(());
        }
        self.repeated += elements;
        if self.repeated <= MAX_REPEATED {
            return Ok(());
        }
        let message = format!("pipelines are repeated more than {MAX_REPEATED} times");
        let error = place.error(message, "");
        let holders: Vec<&str> = self.inside.iter().map(|(name, _)| name.as_str()).collect();
        let error = error.note(format!("`{name}` is held so: {}", holders.join(" holds ")));
        Err(error.help("name a pipeline fewer times, or put its passes in a `fixpoint`").into())
    }

    fn plugin(&self, spec: &PassSpec, text: &Text<'_>) -> Result<Pass, PlanError> {
        let id = self.find(&spec.name.text, &text.place(&spec.name.at))?;
        let record = self.registry.record(id);
        Ok(Pass::plugin(record, id, text.given(&spec.options)))
    }

    fn find(&self, name: &str, place: &Place) -> Result<PassId, PlanError> {
        self.registry.find(name).map_err(|error| {
            let diagnostic = error.explain(place.error(error.to_string(), ""));
            let pipelines = self.registry.config().pipelines.keys().map(String::as_str);
            match nearest(name, pipelines) {
                Some(near) if matches!(error, LookupError::Unknown { nearest: None, .. }) => {
                    diagnostic.help(format!("did you mean the pipeline `{near}`?"))
                }
                _ => match nearest(name, self.own.names()) {
                    Some(near) => {
                        diagnostic.help(format!("did you mean the program's own `{near}`?"))
                    }
                    None => diagnostic,
                },
            }
            .into()
        })
    }

    /// Plans a pass as a value. An explicit list: groups are nested as deep as somebody makes them.
    fn value(&mut self, root: &Pass, place: &Place, reason: Reason) -> Result<(), PlanError> {
        enum Part<'p> {
            Pass(&'p Pass, Reason),
            End,
        }
        let mut parts = vec![Part::Pass(root, reason)];
        while let Some(part) = parts.pop() {
            let Part::Pass(pass, reason) = part else {
                self.end(Vec::new())?;
                continue;
            };
            match (pass.body(), &reason) {
                (Body::Group(kind, passes), _) => {
                    if !matches!(reason, Reason::Called) {
                        requirements::plan_before(self, pass, place)?;
                    }
                    self.begin(pass.clone(), place, reason)?;
                    parts.push(Part::End);
                    let of = pass.name().to_owned();
                    let member = || match kind {
                        GroupKind::Composite => Reason::Pinned { of: of.clone() },
                        _ => Reason::Member { of: of.clone() },
                    };
                    parts.extend(passes.iter().rev().map(|pass| Part::Pass(pass, member())));
                }
                (_, Reason::Called) => self.step(pass.clone(), place, reason)?,
                _ => requirements::plan(self, pass.clone(), place, reason)?,
            }
        }
        Ok(())
    }

    fn begin(&mut self, pass: Pass, place: &Place, reason: Reason) -> Result<(), PlanError> {
        let kind = pass.group_kind().expect("a group begins");
        if let Some(error) = self.misfit(pass.name(), None, place) {
            return Err(error.into());
        }
        let name = pass.name().to_owned();
        let step = PassStep { pass, name, options: Vec::new(), reason };
        self.open.push((self.plan.steps.len(), place.clone()));
        self.plan.steps.push(Step::Begin(GroupStep { step, kind, end: 0 }));
        Ok(())
    }

    fn end(&mut self, given: Vec<Given>) -> Result<(), PlanError> {
        let (begin, _) = self.open.pop().expect("what ends has begun");
        if !given.is_empty()
            && let Step::Begin(group) = &mut self.plan.steps[begin]
        {
            set_options(group, given)?;
        }
        self.plan.end(begin);
        Ok(())
    }

    /// Adds a pass alone.
    pub(super) fn step(
        &mut self,
        pass: Pass,
        place: &Place,
        reason: Reason,
    ) -> Result<(), PlanError> {
        let kind = match pass.body() {
            Body::Plugin { id, .. } => self.registry.record(*id).kind,
            Body::Function(kind, _) => *kind,
            Body::Module(_) | Body::Group(..) => PassKind::Module,
        };
        if let Some(error) = self.misfit(pass.name(), Some(kind), place) {
            return Err(match &reason {
                Reason::Required { by, .. } => error.note(format!("it is required by `{by}`")),
                _ => error,
            }
            .into());
        }
        if let Body::Plugin { id, .. } = pass.body() {
            self.order.step(self.registry, *id, place)?;
        }
        let (name, options) = (pass.name().to_owned(), self.settle(&pass)?);
        self.plan.steps.push(Step::Pass(PassStep { pass, name, options, reason }));
        Ok(())
    }

    /// Why a pass of this kind, or a group, cannot stand in the innermost group.
    fn misfit(&self, name: &str, kind: Option<PassKind>, place: &Place) -> Option<Diagnostic> {
        let (begin, group) = self.open.last()?;
        let is_functions = matches!(&self.plan.steps[*begin],
            Step::Begin(group) if group.kind == GroupKind::Functions);
        if !is_functions || matches!(kind, Some(PassKind::Function | PassKind::Prim)) {
            return None;
        }
        let what = if kind.is_some() { "runs over the module" } else { "is a group" };
        let message = format!("`{name}` {what}, and `func` holds passes over functions");
        let error = place.error(message, "").note(format!("the group begins in {group}"));
        Some(match kind {
            Some(_) => error.help(format!("name `{name}` before the group or behind it")),
            None => error.help("put the groups the other way round: `fixpoint(func(…))`"),
        })
    }

    /// The options of a pass: what the registry's files set, above that the context, above that a pipeline.
    fn settle(&self, pass: &Pass) -> Result<Vec<StepOption>, PlanError> {
        let Body::Plugin { id, given } = pass.body() else { return Ok(Vec::new()) };
        let record = self.registry.record(*id);
        let config = self.registry.config_of(*id);
        let configured =
            config.iter().flat_map(|config| &config.options).map(|(name, set)| Given {
                name: Set { value: name.clone(), place: set.place.clone() },
                value: set.clone(),
            });
        let given =
            configured.chain(self.settings.of_pass(&record.name)).chain(given.iter().cloned());
        Ok(options::settle(&record.name, &record.options, given)?)
    }
}

/// Sets what stands in braces behind a group.
fn set_options(group: &mut GroupStep, given: Vec<Given>) -> Result<(), PlanError> {
    let mut known = vec![
        OptionRecord::new_str("name", group.kind.name()),
        OptionRecord::new_int("opt_level", 0, 0, u8::MAX.into()),
    ];
    if let GroupKind::Fixpoint { max } = group.kind {
        known.push(OptionRecord::new_int("max", max.into(), 1, u32::MAX.into()));
    }
    let pass = &mut group.step.pass;
    for option in options::settle(group.kind.name(), &known, given.into_iter())? {
        match (option.name.as_str(), option.value) {
            ("max", OptionValue::Int(max)) => {
                group.kind = GroupKind::Fixpoint { max: u32::try_from(max).unwrap_or(u32::MAX) };
            }
            ("opt_level", OptionValue::Int(level)) => {
                *pass = pass.clone().opt_level(u8::try_from(level).unwrap_or(u8::MAX));
            }
            ("name", OptionValue::Str(name)) => {
                *pass = pass.clone().named(name.clone());
                group.step.name = name;
            }
            _ => {}
        }
    }
    pass.set_kind(group.kind);
    Ok(())
}
