# make demo      compile the digits network and run it on images that it never saw
# make test      run every test, the networks of the onnx wheel among them, and say how long each suite took
# make bench     measure, with ONNX Runtime beside it where its wheel can be had
# make bench-models  the networks and products of benches/README.md, ONNX Runtime and OpenVINO beside; MODELS="…" adds others
# make fuzz-models  random models of many operators, on from where it was stopped: GRAPHS=N ends it after so many of each kind
# make fuzz      files that would end what reads them, looked for by libFuzzer: RUNS=1000000 or 60s of each of FUZZERS="npy onnx …"
# make export-models  small models of torch, torchvision and transformers, exported and compared with ONNX Runtime; PYTHON=… has them
# make sanitize  look for undefined behaviour and races, with every tool that is at hand
# make wheel     the package for Python in target/python, tried where there is nothing else
# make build     the tenon binary and the plugins, optimized, in target/release
# make lint      format, clippy, documentation: warnings are errors

.DEFAULT_GOAL := build
.PHONY: demo test bench bench-models fuzz fuzz-models export-models sanitize wheel build lint setup models emulators

TENON := target/release/tenon

setup:
	@scripts/setup.sh

models: setup
	@scripts/setup-python.sh --models

build: setup
	cargo build --release --workspace

demo: build
	@mkdir -p .cache
	$(TENON) compile examples/digits/digits.onnx -D batch=360 -o .cache/digits.so
	cargo run --release --quiet --example digits -- .cache/digits.so

emulators: setup
	@scripts/setup.sh --emulators

test: setup models emulators
	@scripts/test.sh

bench: build models
	cargo build --release --workspace --examples
	cargo bench --workspace --bench '*'
	@if [ -e .cache/models-unavailable ]; \
	 then echo "Models and ONNX Runtime are not measured: $$(cat .cache/models-unavailable)"; \
	 else .cache/venv/bin/python benches/models.py .cache/models/light_*.onnx; fi

bench-models: build models
	@scripts/setup-python.sh --bench
	@if [ -e .cache/models-unavailable ]; \
	 then echo "Models are not measured: $$(cat .cache/models-unavailable)"; \
	 else .cache/venv/bin/python benches/products.py .cache/products && \
	   .cache/venv/bin/python benches/models.py -t 1,2 .cache/models/light_*.onnx .cache/products/*.onnx $(MODELS); fi

fuzz-models: build models
	@scripts/fuzz-models.sh $(GRAPHS)

fuzz: build
	@scripts/fuzz.sh $(or $(RUNS),60s) $(FUZZERS)

PYTHON := python3
export-models: build
	@$(PYTHON) tests/exported/export_models.py $(TENON) .cache/exported $(MODELS)
	@$(PYTHON) tests/exported/open_shapes.py $(TENON) .cache/exported $(MODELS)
	@$(PYTHON) tests/exported/quantized_models.py $(TENON) .cache/exported $(MODELS)

sanitize: setup
	@scripts/sanitize.sh

wheel: setup
	@scripts/wheel.sh

lint: setup
	cargo fmt --all --check
	cargo fmt --check --manifest-path tests/interleavings/Cargo.toml
	cargo clippy --release --workspace --all-targets -- -D warnings
	cargo clippy --quiet --manifest-path tests/interleavings/Cargo.toml --target-dir target/interleavings -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --release --workspace --no-deps --quiet
