//! `options`: what can be configured. No plugin's code runs here.

use clap::Subcommand;
use serde_json::json;

use super::Global;
use super::output::{Failure, print, print_json, table};
use super::passes::range;
use tenon_compiler::passes::Settings;

#[derive(Subcommand)]
pub(super) enum OptionsCommand {
    /// List the options of all passes and of Tenon itself, as `--config` takes them
    List,
}

pub(super) fn options(global: &Global, command: &OptionsCommand) -> Result<(), Failure> {
    let OptionsCommand::List = command;
    let declared = Settings::declared(&global.open_registry()?);
    if global.json {
        let options = declared.iter().map(
            |option| json!({ "key": option.key, "owner": option.owner, "option": option.record }),
        );
        return print_json(&options.collect::<Vec<_>>());
    }
    let rows = declared.iter().map(|option| {
        let record = &option.record;
        vec![
            option.key.clone(),
            record.ty.to_string(),
            record.default_value().to_string(),
            range(record),
            record.help.clone(),
        ]
    });
    print(table(&rows.collect::<Vec<_>>()))
}
