//! Operators of `ai.onnx.ml` on rows of numbers. What is expected is what ONNX Runtime makes of the same models.

use tenon_compiler::eval::Tensor;

use super::open_sequences::{compile, elements};
use super::*;
use crate::compiled;

fn floats(name: &str, values: &[f32]) -> Message {
    Message::new().bytes(1, name).int(20, 6).floats(7, values)
}

fn strings(name: &str, values: &[&str]) -> Message {
    let list = Message::new().bytes(1, name).int(20, 8);
    values.iter().fold(list, |list, value| list.bytes(9, value))
}

/// A model of one operator on rows of so many elements of a type.
fn of_rows(op: &str, element: i64, columns: i64, outputs: &[&str], given: &[Message]) -> Model {
    let own = node(op, &["x"], outputs, given).bytes(7, "ai.onnx.ml");
    let model = model(17).input("x", element, &[S("n"), N(columns)]).with(1, own);
    outputs.iter().fold(model, |model, name| model.output(name))
}

fn rows(columns: usize, values: &[f32]) -> Tensor {
    Tensor::from_vec(vec![values.len() / columns, columns], values.to_vec())
}

fn near(found: &Tensor, expected: &[f32]) {
    let found = elements(found);
    let is_near =
        |(a, b): (&f32, &f32)| a == b || (a - b).abs() <= 1e-5 || a.is_nan() && b.is_nan();
    let all = found.len() == expected.len() && found.iter().zip(expected).all(is_near);
    assert!(all, "{found:?}, expected {expected:?}");
}

/// What an operator makes of rows of floats.
fn mapped(op: &str, given: &[Message], x: &Tensor, expected: &[f32]) {
    let compiled = compile(&of_rows(op, FLOAT, x.shape()[1] as i64, &["y"], given));
    let found = compiled::run(&compiled, std::slice::from_ref(x)).expect("it runs");
    near(&found[0], expected);
}

/// The labels and scores that a classifier makes of rows of floats.
fn classified(op: &str, given: &[Message], x: &Tensor, labels: &[i64], scores: &[f32]) {
    let compiled = compile(&of_rows(op, FLOAT, x.shape()[1] as i64, &["label", "s"], given));
    let found = compiled::run(&compiled, std::slice::from_ref(x)).expect("it runs");
    assert_eq!(found[0].elements::<i64>(), labels);
    near(&found[1], scores);
}

/// Two rows of two numbers.
fn two_rows() -> Tensor {
    rows(2, &[1.0, 2.0, -1.0, 0.5])
}

/// The attributes of trees that compare the only column with 0.5: what leaves give if it is below, and if not.
type Stump<'a> = (&'a [(i64, f32)], &'a [(i64, f32)]);

fn stumps(stumps: &[Stump], labels: &[i64], more: &[Message]) -> Vec<Message> {
    let trees: Vec<i64> = (0..stumps.len() as i64).flat_map(|tree| [tree; 3]).collect();
    let each = |values: [i64; 3]| values.repeat(stumps.len());
    let (mut places, mut weights) = (Vec::new(), Vec::new());
    for (tree, (below, above)) in (0..).zip(stumps) {
        for (leaf, votes) in [(1, below), (2, above)] {
            places.extend(votes.iter().map(|&(class, _)| [tree, leaf, class]));
            weights.extend(votes.iter().map(|&(_, weight)| weight));
        }
    }
    let column = |at: usize| places.iter().map(|place: &[i64; 3]| place[at]).collect::<Vec<_>>();
    let mut attributes = vec![
        ints("nodes_treeids", &trees),
        ints("nodes_nodeids", &each([0, 1, 2])),
        ints("nodes_featureids", &each([0, 0, 0])),
        ints("nodes_truenodeids", &each([1, 0, 0])),
        ints("nodes_falsenodeids", &each([2, 0, 0])),
        floats("nodes_values", &[0.5, 0.0, 0.0].repeat(stumps.len())),
        strings("nodes_modes", &["BRANCH_LEQ", "LEAF", "LEAF"].repeat(stumps.len())),
        ints("class_treeids", &column(0)),
        ints("class_nodeids", &column(1)),
        ints("class_ids", &column(2)),
        floats("class_weights", &weights),
        ints("classlabels_int64s", labels),
    ];
    attributes.extend_from_slice(more);
    attributes
}

#[test]
fn trees_vote_for_one_class_of_two() {
    let x = rows(1, &[0.0, 1.0]);
    let check = |votes: [f32; 2], more: &[Message], labels: [i64; 2], scores: &[f32]| {
        let [below, above] = votes.map(|weight| [(0, weight)]);
        let given = stumps(&[(&below, &above)], &[3, 7], more);
        classified("TreeEnsembleClassifier", &given, &x, &labels, scores);
    };
    let logistic = string("post_transform", "LOGISTIC");
    let base = floats("base_values", &[0.1]);
    // None is below zero: probabilities.
    check([0.7, 0.2], &[], [7, 3], &[0.3, 0.7, 0.8, 0.2]);
    let scores = [0.310_025_5, 0.689_974_5, 0.425_557_5, 0.574_442_5];
    check([0.7, 0.2], &[base.clone(), logistic.clone()], [7, 3], &scores);
    // Differences.
    check([0.7, -0.2], std::slice::from_ref(&base), [7, 3], &[-0.8, 0.8, 0.1, -0.1]);
    let scores = [0.331_812_3, 0.668_187_7, 0.549_834, 0.450_166];
    check([0.7, -0.2], &[logistic], [7, 3], &scores);
    check([0.7, -0.2], &[string("post_transform", "SOFTMAX")], [7, 3], &[-0.7, 0.7, 0.2, -0.2]);
}

#[test]
fn trees_vote_for_the_second_class_or_for_many() {
    let x = rows(1, &[0.0, 1.0]);
    let op = "TreeEnsembleClassifier";
    let given = stumps(&[(&[(1, 0.7)], &[(1, 0.2)])], &[3, 7], &[]);
    classified(op, &given, &x, &[7, 3], &[0.0, 0.7, 0.0, 0.2]);
    let votes: [Stump; 2] = [(&[(0, 0.7)], &[(1, -0.2)]), (&[(2, 0.5)], &[(0, 0.1), (2, 0.4)])];
    // The third class is none where nothing tells of it.
    let some: [Stump; 1] = [(&[(0, -0.7), (1, -0.5)], &[(0, -0.1), (1, -0.2)])];
    let scores = [-0.7, -0.5, 0.0, -0.1, -0.2, 0.0];
    classified(op, &stumps(&some, &[5, 6, 9], &[]), &x, &[6, 5], &scores);
    // One score alone is not transformed.
    let logistic = string("post_transform", "LOGISTIC");
    let given = stumps(&[(&[(0, 0.7)], &[(0, -0.2)])], &[5], &[logistic]);
    classified(op, &given, &x, &[1, 0], &[0.7, -0.2]);
    let base = floats("base_values", &[0.1, 0.2, 0.3]);
    let given = stumps(&votes, &[5, 6, 9], std::slice::from_ref(&base));
    classified(op, &given, &x, &[5, 9], &[0.8, 0.2, 0.8, 0.2, 0.0, 0.7]);
    let zero = string("post_transform", "SOFTMAX_ZERO");
    let given = stumps(&votes, &[5, 6, 9], &[base, zero]);
    let scores = [0.392_339_7, 0.215_320_6, 0.392_339_7, 0.377_540_65, 0.0, 0.622_459_35];
    classified(op, &given, &x, &[5, 9], &scores);
    let probit = string("post_transform", "PROBIT");
    let votes: [Stump; 1] = [(&[(0, 0.7), (1, 0.1), (2, 0.2)], &[(0, 0.5), (1, 0.4), (2, 0.1)])];
    let given = stumps(&votes, &[5, 6, 9], &[probit]);
    let scores = [0.524_445_9, -1.281_712_9, -0.841_756_1, 0.0, -0.253_353_5, -1.281_712_9];
    classified(op, &given, &x, &[5, 5], &scores);
}

/// Trees that tell of one class each read one number; not where a product with zero would not be zero.
#[test]
fn trees_of_one_class_each_are_summed_by_class() {
    let x = rows(1, &[0.0, 1.0]);
    let op = "TreeEnsembleClassifier";
    let given = |first: f32| {
        let votes: [Stump; 4] = [
            (&[(0, first)], &[(0, -0.5)]),
            (&[(1, 0.25)], &[(1, 1.5)]),
            (&[(2, -1.0)], &[(2, 0.75)]),
            (&[(1, 2.0)], &[(1, -0.125)]),
        ];
        stumps(&votes, &[5, 6, 9], &[])
    };
    classified(op, &given(0.5), &x, &[6, 6], &[0.5, 2.25, -1.0, -0.5, 1.375, 0.75]);
    classified(
        op,
        &given(f32::INFINITY),
        &x,
        &[5, 6],
        &[f32::INFINITY, 2.25, -1.0, -0.5, 1.375, 0.75],
    );
    let text = |first: f32| of_rows(op, FLOAT, 1, &["label", "s"], &given(first)).text();
    assert!(text(0.5).contains("nn.dense("), "{}", text(0.5));
    assert!(!text(f32::INFINITY).contains("nn.dense("), "{}", text(f32::INFINITY));
}

#[test]
fn linear_models_are_products() {
    let check = |given: &[Message], labels: &[i64], scores: &[f32]| {
        let labels_are = ints("classlabels_ints", &[3, 7]);
        let given = [given, &[labels_are]].concat();
        classified("LinearClassifier", &given, &two_rows(), labels, scores);
    };
    let one = [floats("coefficients", &[0.5, -0.3]), floats("intercepts", &[0.1])];
    let both = [floats("coefficients", &[0.5, -0.3, 0.2, 0.2]), floats("intercepts", &[0.1, 0.2])];
    let logistic = [string("post_transform", "LOGISTIC")];
    check(
        &[&one[..1], &[floats("intercepts", &[0.2])]].concat(),
        &[7, 3],
        &[0.9, 0.1, 1.45, -0.45],
    );
    check(&[&one[..], &logistic].concat(), &[3, 3], &[0.5, 0.5, 0.634_135_6, 0.365_864_4]);
    check(&both, &[7, 7], &[0.0, 0.8, -0.55, 0.1]);
    let softmax = [string("post_transform", "SOFTMAX")];
    let scores = [0.310_025_5, 0.689_974_5, 0.342_989_5, 0.657_010_4];
    check(&[&both[..], &softmax].concat(), &[7, 7], &scores);
    let targets = [int("targets", 2)];
    let given = [&both[..], &targets].concat();
    mapped("LinearRegressor", &given, &two_rows(), &[0.0, 0.8, -0.55, 0.1]);
}

#[test]
fn support_vectors_tell_pairs_of_classes() {
    let machine = [
        floats("coefficients", &[1.0, -1.0]),
        floats("support_vectors", &[1.0, 0.0, 0.0, 1.0]),
        floats("rho", &[0.3]),
        string("kernel_type", "RBF"),
        floats("kernel_params", &[0.5, 0.0, 3.0]),
        ints("vectors_per_class", &[1, 1]),
        ints("classlabels_ints", &[3, 7]),
    ];
    let check = |more: &[Message], labels: &[i64], scores: &[f32]| {
        let given = [&machine, more].concat();
        classified("SVMClassifier", &given, &two_rows(), labels, scores);
    };
    check(&[], &[3, 7], &[-0.067_455_84, 0.067_455_84, 0.115_828_47, -0.115_828_47]);
    let logistic = string("post_transform", "LOGISTIC");
    check(&[logistic], &[3, 7], &[0.483_142_4, 0.516_857_6, 0.528_924_76, 0.471_075_24]);
    let probabilities = [floats("prob_a", &[-2.0]), floats("prob_b", &[0.1])];
    check(&probabilities, &[3, 7], &[0.508_727_1, 0.491_272_94, 0.417_433_9, 0.582_566]);
}

/// Three classes, of which the second has two support vectors.
#[test]
fn each_pair_of_classes_has_a_vote() {
    let machine = [
        floats("coefficients", &[1.0, -0.5, 0.25, -1.0, 0.75, 0.5, -0.25, 2.0]),
        floats("support_vectors", &[1.0, 0.0, 0.0, 1.0, 0.5, 0.5, -1.0, 1.0]),
        floats("rho", &[0.3, -0.2, 0.1]),
        floats("kernel_params", &[0.5, 0.25, 3.0]),
        ints("vectors_per_class", &[1, 2, 1]),
        ints("classlabels_ints", &[3, 7, 9]),
    ];
    let check = |more: &[Message], labels: &[i64], scores: &[f32]| {
        let given = [&machine, more].concat();
        classified("SVMClassifier", &given, &two_rows(), labels, scores);
    };
    let kernel = |name: &str| string("kernel_type", name);
    check(&[kernel("LINEAR")], &[3, 7], &[0.675, -0.45, 2.725, -1.0125, -2.45, 3.4125]);
    let scores = [-0.004_687_5, -0.305_468_74, 1.670_312_5, 0.222_363_3, -1.211_718_8, 2.162_011_6];
    check(&[kernel("POLY")], &[7, 3], &scores);
    let scores =
        [0.701_405_76, -0.358_787_24, 1.604_041_3, -0.144_888_98, -1.145_283_2, 1.823_158_7];
    check(&[kernel("SIGMOID")], &[3, 7], &scores);
    let probabilities =
        [kernel("RBF"), floats("prob_a", &[-2.0, -1.5, 0.5]), floats("prob_b", &[0.1, -0.3, 0.2])];
    let scores = [0.392_185_84, 0.238_137_86, 0.369_676_23, 0.203_937_83, 0.168_316_1, 0.627_746_1];
    check(&probabilities, &[3, 3], &scores);
}

#[test]
fn support_vectors_tell_numbers() {
    let machine = [
        floats("coefficients", &[1.0, -1.0]),
        floats("support_vectors", &[1.0, 0.0, 0.0, 1.0]),
        floats("kernel_params", &[0.5, 0.25, 3.0]),
        int("n_supports", 2),
    ];
    let check = |more: &[Message], expected: &[f32]| {
        mapped("SVMRegressor", &[&machine, more].concat(), &two_rows(), expected);
    };
    let rho = floats("rho", &[0.3]);
    check(&[string("kernel_type", "POLY"), rho.clone()], &[-1.231_25, 0.159_375]);
    check(&[string("kernel_type", "SIGMOID"), rho], &[0.086_865_37, -0.407_035_83]);
    check(&[int("one_class", 1), floats("rho", &[0.1])], &[-1.0, -1.0]);
}

#[test]
fn columns_are_scaled_and_rows_normalized() {
    let scaled = [floats("offset", &[1.0, 2.0]), floats("scale", &[0.5, 2.0])];
    mapped("Scaler", &scaled, &two_rows(), &[0.0, 0.0, -1.0, -3.0]);
    let scaled = [floats("offset", &[1.0]), floats("scale", &[0.5])];
    mapped("Scaler", &scaled, &two_rows(), &[0.0, 0.5, -1.0, -0.25]);
    let x = rows(2, &[1.0, -2.0, -1.0, -0.5, 0.0, 0.0]);
    for (norm, expected) in [
        ("MAX", [1.0, -2.0, 2.0, 1.0, 0.0, 0.0]),
        ("L1", [1.0 / 3.0, -2.0 / 3.0, -2.0 / 3.0, -1.0 / 3.0, 0.0, 0.0]),
        ("L2", [0.447_213_6, -0.894_427_2, -0.894_427_2, -0.447_213_6, 0.0, 0.0]),
    ] {
        mapped("Normalizer", &[string("norm", norm)], &x, &expected);
    }
}

#[test]
fn what_is_missing_is_imputed() {
    let x = rows(2, &[1.0, f32::NAN, 0.0, 2.0]);
    let replaced = |value: f32, imputed: &[f32]| {
        [floats("imputed_value_floats", imputed), float("replaced_value_float", value)]
    };
    mapped("Imputer", &replaced(f32::NAN, &[9.0, 8.0]), &x, &[1.0, 8.0, 0.0, 2.0]);
    mapped("Imputer", &replaced(0.0, &[5.0]), &x, &[1.0, f32::NAN, 5.0, 2.0]);
    let given = [ints("imputed_value_int64s", &[9]), int("replaced_value_int64", 1)];
    let compiled = compile(&of_rows("Imputer", INT64, 2, &["y"], &given));
    let x = Tensor::from_vec(vec![2, 2], vec![1i64, 2, 3, 1]);
    let found = compiled::run(&compiled, &[x]).expect("it runs");
    assert_eq!(*found[0].elements::<i64>(), [9, 2, 3, 9]);
}

#[test]
fn categories_are_vectors() {
    let categories = ints("cats_int64s", &[1, 0, 2]);
    let expected = [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0];
    mapped("OneHotEncoder", &[categories, int("zeros", 1)], &two_rows(), &expected);
}

#[test]
fn features_stand_beside_each_other() {
    let attributes = [ints("inputdimensions", &[3, 2])];
    let own = node("FeatureVectorizer", &["a", "b"], &["y"], &attributes);
    let model = model(17)
        .input("a", FLOAT, &[S("n"), N(2)])
        .input("b", FLOAT, &[S("n"), N(3)])
        .with(1, own.bytes(7, "ai.onnx.ml"))
        .output("y");
    let b = rows(3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let found = compiled::run(&compile(&model), &[two_rows(), b]).expect("it runs");
    near(&found[0], &[1.0, 2.0, 0.0, 1.0, 2.0, -1.0, 0.5, 0.0, 4.0, 5.0]);
}

#[test]
fn numbers_stand_for_others() {
    let x = rows(2, &[1.0, f32::NAN, 0.0, 2.0]);
    let given = [
        floats("keys_floats", &[1.0, f32::NAN, 1.0, -3.0]),
        floats("values_floats", &[5.0, 6.0, 7.0, 9.0]),
        float("default_float", 0.5),
    ];
    mapped("LabelEncoder", &given, &x, &[5.0, 6.0, 0.5, 0.5]);
    let given = [ints("keys_int64s", &[7, 3, -4, 3]), ints("values_int64s", &[5, 6, 8, 1])];
    let tensor = |name: &str, values: &[i64]| {
        let dims = [values.len() as i64];
        let tensor = Message::new().ints(1, &dims).int(2, INT64).ints(7, values);
        Message::new().bytes(1, name).int(20, 4).message(5, tensor)
    };
    let tensors = [
        tensor("keys_tensor", &[7, 3, -4, 3]),
        tensor("values_tensor", &[5, 6, 8, 1]),
        tensor("default_tensor", &[-1]),
    ];
    for given in [&given[..], &tensors] {
        let compiled = compile(&of_rows("LabelEncoder", INT64, 2, &["y"], given));
        let x = Tensor::from_vec(vec![2, 2], vec![3i64, 1, 9, -4]);
        let found = compiled::run(&compiled, &[x]).expect("it runs");
        assert_eq!(*found[0].elements::<i64>(), [6, -1, -1, 8]);
    }
}

#[test]
fn strings_and_maps_are_refused_with_a_remedy() {
    let error = |op: &str, given: &[Message]| of_rows(op, FLOAT, 2, &["y"], given).error();
    let says = |error: String, reason: &str| assert!(error.contains(reason), "{error}");
    let labels = [strings("classlabels_strings", &["cat", "dog"])];
    for op in ["TreeEnsembleClassifier", "LinearClassifier", "SVMClassifier"] {
        says(error(op, &labels), "as in its attribute `classlabels_strings`; train the model on");
    }
    let categories = [strings("cats_strings", &["cat"])];
    says(error("OneHotEncoder", &categories), "as in its attribute `cats_strings`; encode");
    says(error("CategoryMapper", &categories), "as in its attribute `cats_strings`; encode");
    let keys = [strings("keys_strings", &["cat"]), ints("values_int64s", &[1])];
    says(error("LabelEncoder", &keys), "as in its attribute `keys_strings`; encode labels");
    says(error("ZipMap", &[]), "export the model with `options={'zipmap': False}`");
    says(error("DictVectorizer", &[]), "give the model a matrix of features");
}

#[test]
fn lists_that_do_not_fit_are_refused() {
    let error = |op: &str, given: &[Message]| of_rows(op, FLOAT, 2, &["y"], given).error();
    let says = |error: String, reason: &str| assert!(error.contains(reason), "{error}");
    let labels = ints("classlabels_ints", &[3, 7]);
    let given =
        [floats("coefficients", &[1.0; 6]), floats("intercepts", &[0.0; 3]), labels.clone()];
    says(error("LinearClassifier", &given), "it has 2 labels for 3 classes");
    says(error("LinearRegressor", &given[..1]), "nn.dense");
    says(error("LinearClassifier", &given[..2]), "it has no attribute `classlabels_ints`");
    let given = [ints("vectors_per_class", &[1]), labels.clone()];
    says(error("SVMClassifier", &given), "`vectors_per_class` does not fit to 2 classes");
    let given = [
        ints("vectors_per_class", &[1, 1]),
        floats("support_vectors", &[1.0; 4]),
        floats("coefficients", &[1.0]),
        floats("rho", &[0.0]),
        labels,
    ];
    says(error("SVMClassifier", &given), "`coefficients` is too short");
    says(error("SVMRegressor", &[string("post_transform", "LOGISTIC")]), "the transform LOGISTIC");
    says(error("Normalizer", &[string("norm", "L3")]), "`norm` is \"L3\"; allowed is MAX, L1, L2");
    says(error("Scaler", &[floats("scale", &[1.0; 3])]), "`scale` has 3 numbers");
    says(error("Imputer", &[]), "it has no values that are imputed to f32");
    says(error("OneHotEncoder", &[]), "it has no attribute `cats_int64s`");
    says(error("FeatureVectorizer", &[]), "it has 0 sizes for 1 inputs");
    let sizes = [ints("inputdimensions", &[-1])];
    says(error("FeatureVectorizer", &sizes), "-1 columns are asked for");
    let keys = [ints("keys_int64s", &[1, 2]), ints("values_int64s", &[1])];
    says(error("LabelEncoder", &keys), "it has 1 values for 2 keys");
    let op = "TreeEnsembleClassifier";
    let vote = stumps(&[(&[(0, 1.0)], &[(4, 1.0)])], &[1, 2], &[]);
    says(error(op, &vote), "its lists do not fit together");
    let base = floats("base_values", &[0.1, 0.2]);
    let vote = stumps(&[(&[(0, 1.0)], &[(0, 1.0)])], &[1, 2], &[base]);
    says(error(op, &vote), "two base values where all votes are for one class");
    let probit = string("post_transform", "PROBIT");
    let vote = stumps(&[(&[(0, 1.0)], &[(0, 1.0)])], &[1, 2], &[probit]);
    says(error(op, &vote), "the transform PROBIT of one score for two classes");
}
