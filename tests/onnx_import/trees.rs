//! Ensembles of decision trees, and what is none.

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
fn trees_are_as_deep_as_their_longest_way() {
    let text = regressor(&STUMP, &[]).text();
    assert!(text.starts_with("fn @main(%x: f32[n, 3]) -> f32[n, 1]"), "{text}");
    assert!(text.contains("{ depth = 1 }"), "{text}");
    let deeper = [("BRANCH_LEQ", 1, 2), ("BRANCH_LT", 2, 3), ("LEAF", 0, 0), ("LEAF", 0, 0)];
    assert!(regressor(&deeper, &[]).text().contains("{ depth = 2 }"));
    let chain = (0..5000).map(|at| ("BRANCH_LEQ", at + 1, 5000));
    let chain: Vec<_> = chain.chain([STUMP[1]]).collect();
    assert!(regressor(&chain, &[]).text().contains("{ depth = 5000 }"));
}

/// Whatever nodes compare by, they are asked whether an element is at most a number.
#[test]
fn nodes_compare_in_one_way() {
    let depth = |mode| {
        let text = regressor(&[(mode, 1, 2), STUMP[1], STUMP[2]], &[]).text();
        assert_eq!(text.matches("trees.leaves(").count(), 1, "{text}");
        text.contains("{ depth = 2 }")
    };
    let modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"];
    assert_eq!(modes.map(depth), [false, false, false, false, true, true]);
}

#[test]
fn what_is_no_ensemble_of_trees_is_refused() {
    let error = |nodes: &[(&str, i64, i64)], more: &[Message]| regressor(nodes, more).error();
    let says = |error: String, reason: &str| assert!(error.contains(reason), "{error}");
    says(error(&[("BRANCH_LEQ", 1, 7), STUMP[1]], &[]), "lead to nodes that are not there");
    says(error(&[("LARGER", 1, 2), STUMP[1], STUMP[2]], &[]), "`nodes_modes` is \"LARGER\"");
    // Trees that never end.
    says(error(&[("BRANCH_LEQ", 0, 1), STUMP[1]], &[]), "its trees lead in a circle");
    let circle = [("BRANCH_LEQ", 1, 2), ("BRANCH_LT", 0, 2), STUMP[1]];
    says(error(&circle, &[]), "its trees lead in a circle");
    let root = [string("post_transform", "ROOT")];
    says(error(&STUMP, &root), "`post_transform` is \"ROOT\"");
    let middle = [string("aggregate_function", "MEDIAN")];
    says(error(&STUMP, &middle), "`aggregate_function` is \"MEDIAN\"");
}
