//! How many cores a load needs: a cost model, fitted to short runs on this machine, judged by mixes it has not seen.
//!
//! It predicts the target's processor time, and from that cores at a utilisation, or what so many carry. Response times
//! it shows as they were measured, by how busy the core was. It says nothing of memory, or of what a network card adds;
//! and it holds for the machine that it was measured on.

mod answer;
mod design;
mod model;
#[cfg(test)]
mod paper;
mod sentence;
mod trial;
mod validation;
mod waits;

use courser_lab::target::{self, Definition, KeyKind};

use crate::cli::PlanArgs;
use crate::exit::Failure;

pub(crate) use answer::{Carried, Cores, Rate, words};
pub(crate) use model::{Fitted, Model};
pub(crate) use sentence::Question;
pub(crate) use validation::{Check, Validation};
pub(crate) use waits::{Waits, waits};

/// A question, and all that is known about its answer.
pub(crate) struct CorePlan {
    pub(crate) question: Question,
    pub(crate) model: Model,
    pub(crate) fitted: Fitted,
    pub(crate) validation: Validation,
    pub(crate) cores: Cores,
    /// What other choices would change.
    pub(crate) others: Vec<Cores>,
}

/// Answers the question, from a model that was kept, or by measuring one; none when that was cut short.
///
/// # Errors
/// When the question is not understood, or nothing can be measured.
pub(crate) fn plan(args: &PlanArgs) -> Result<Option<CorePlan>, Failure> {
    let question: Question = args.question.parse().map_err(Failure::usage)?;
    let model = match &args.model {
        Some(path) => Some(Model::read(path).map_err(Failure::usage)?),
        None => measured(args, question.key)?,
    };
    let Some(model) = model else { return Ok(None) };
    let fitted = model.fitted().map_err(Failure::System)?;
    let validation = Validation::new(&model, &fitted);
    let basis = answer::Basis { fitted: &fitted, misfit: validation.misfit() };
    let (cores, others) = answer::answer(&question, &model, basis).map_err(Failure::usage)?;
    Ok(Some(CorePlan { question, model, fitted, validation, cores, others }))
}

/// Measures a model, and keeps it where that was asked for.
fn measured(args: &PlanArgs, key: KeyKind) -> Result<Option<Model>, Failure> {
    let mut keys = vec![KeyKind::P256, KeyKind::Rsa(2048)];
    if !keys.contains(&key) {
        keys.push(key);
    }
    let trial = trial::Trial {
        target: definition(&args.target)?,
        keys,
        seed: args.seed,
        time: args.time,
        rounds: usize::from(args.rounds),
        quiet: args.quiet,
    };
    let model = trial.measure()?;
    if let (Some(model), Some(path)) = (&model, &args.record) {
        model.write(path).map_err(Failure::System)?;
    }
    Ok(model)
}

fn definition(name: &str) -> Result<&'static Definition, Failure> {
    let found = target::catalogue().iter().find(|definition| definition.name == name);
    found.ok_or_else(|| {
        Failure::usage(format!("no target is called {name:?}; `courser-bench targets` lists them"))
    })
}
