//! Ensembles of decision trees that are none, or deeper than steps can be written out for.

use super::*;

/// A regressor of one tree that compares `x`: of each node its mode and where it leads, and further attributes.
fn regressor(nodes: &[(&str, i64, i64)], more: &[Message]) -> Model {
    let list = |name: &str, value: &dyn Fn(usize) -> i64| {
        ints(name, &(0..nodes.len()).map(value).collect::<Vec<_>>())
    };
    let modes = Message::new().bytes(1, "nodes_modes").int(20, 8);
    let modes = nodes.iter().fold(modes, |modes, (mode, ..)| modes.bytes(9, mode));
    let floats =
        |name: &str, values: &[f32]| Message::new().bytes(1, name).int(20, 6).floats(7, values);
    let mut attributes = vec![
        modes,
        list("nodes_treeids", &|_| 0),
        list("nodes_nodeids", &|at| at as i64),
        list("nodes_featureids", &|_| 0),
        list("nodes_truenodeids", &|at| nodes[at].1),
        list("nodes_falsenodeids", &|at| nodes[at].2),
        floats("nodes_values", &vec![0.5; nodes.len()]),
        floats("target_weights", &[2.0]),
        ints("target_treeids", &[0]),
        ints("target_nodeids", &[nodes.len() as i64 - 1]),
        ints("target_ids", &[0]),
    ];
    attributes.extend_from_slice(more);
    let ensemble = node("TreeEnsembleRegressor", &["x"], &["y"], &attributes);
    model(13)
        .input("x", FLOAT, &[S("n"), N(3)])
        .with(1, ensemble.bytes(7, "ai.onnx.ml"))
        .output("y")
}

const STUMP: [(&str, i64, i64); 3] = [("BRANCH_LEQ", 1, 2), ("LEAF", 0, 0), ("LEAF", 0, 0)];

#[test]
fn a_step_leads_to_each_level_of_trees() {
    let text = regressor(&STUMP, &[]).text();
    assert!(text.starts_with("fn @main(%x: f32[n, 3]) -> f32[n, 1]"), "{text}");
    assert_eq!(text.matches("gather_elements(").count(), 1, "{text}");
    let deeper = [("BRANCH_LEQ", 1, 2), ("BRANCH_LT", 2, 3), ("LEAF", 0, 0), ("LEAF", 0, 0)];
    let text = regressor(&deeper, &[]).text();
    assert_eq!(text.matches("gather_elements(").count(), 2, "{text}");
}

#[test]
fn what_is_no_ensemble_of_trees_is_refused() {
    let error = |nodes: &[(&str, i64, i64)], more: &[Message]| regressor(nodes, more).error();
    let says = |error: String, reason: &str| assert!(error.contains(reason), "{error}");
    says(error(&[("BRANCH_LEQ", 1, 7), STUMP[1]], &[]), "lead to nodes that are not there");
    says(error(&[("LARGER", 1, 2), STUMP[1], STUMP[2]], &[]), "`nodes_modes` is \"LARGER\"");
    // A tree that never ends.
    says(error(&[("BRANCH_LEQ", 0, 1), STUMP[1]], &[]), "trees that are deeper than 128");
    let root = [string("post_transform", "ROOT")];
    says(error(&STUMP, &root), "`post_transform` is \"ROOT\"");
    let middle = [string("aggregate_function", "MEDIAN")];
    says(error(&STUMP, &middle), "`aggregate_function` is \"MEDIAN\"");
}
