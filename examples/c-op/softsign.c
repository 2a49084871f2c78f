/* x / (1 + |x|), of f32: the shortest operator in C that has a program.
 *
 *   %y = c.softsign(%x)    f32[n, 64]  =>  f32[n, 64]
 *
 * Since its pattern is `elementwise`, it is computed where its argument is, or where it is read.
 */
#define TENON_OP_TABLE &operators
#define TENON_RULE_TABLE &rules
#include <math.h>
#include <tenon_program.h>

#define NAME "c.softsign"

/* The result is like the argument. */
static uint32_t infer(uint32_t index, tenon_host host, uint32_t attrs, tenon_ids args) {
  const tenon_host_ir *ir = (const tenon_host_ir *)tenon_table(host, TENON_HOST_IR_INTERFACE);
  const tenon_host_services *services = (const tenon_host_services *)tenon_table(host, TENON_HOST_SERVICES_INTERFACE);
  tenon_term tensor;
  (void)index, (void)attrs;
  if (!ir || !services) return 0;
  tensor = tenon_term_at(ir->terms(host.run), args.data[0]);
  if (tensor.kind == TENON_TERM_TENSOR && tensor.bits == TENON_DTYPE_F32) return args.data[0];
  services->fail(host.run, TENON_FAIL_ERROR, tenon_text("argument 1 must be a tensor of f32"), TENON_NONE);
  return 0;
}

static bool evaluate(uint32_t index, tenon_host host, uint32_t attrs, tenon_tensors args, tenon_tensors results) {
  const tenon_host_op *ops = (const tenon_host_op *)tenon_table(host, TENON_HOST_OP_INTERFACE);
  float *out = ops ? (float *)(void *)ops->result(host.run, 0) : NULL;
  uint64_t i;
  (void)index, (void)attrs, (void)results;
  for (i = 0; out && i < args.data[0].len / sizeof *out; i++) {
    float x;
    /* The bytes are not necessarily aligned. */
    memcpy(&x, args.data[0].data + i * sizeof x, sizeof x);
    out[i] = (float)(x / (1.0 + fabs((double)x)));
  }
  return out != NULL;
}

/* The rule of the facet `compute`: one block, with an axis for each of the result's. */
static bool program(uint32_t index, tenon_host host, tenon_transaction *transaction, tenon_ids nodes, uint32_t data) {
  tenon_program p;
  tenon_axes all;
  uint32_t x, below;
  (void)index, (void)nodes;
  if (!tenon_program_begin(&p, host, transaction, NAME, data)) return false;
  all = tenon_axes_of(&p, p.outputs[0]);
  x = tenon_load(&p, p.inputs[0], all.at, all.count);
  below = tenon_binary(&p, TENON_BINARY_ADD, tenon_float(&p, TENON_DTYPE_F32, 1), tenon_call(&p, "abs", x));
  tenon_set(&p, "softsign", &all, p.outputs[0], all.at, all.count, tenon_binary(&p, TENON_BINARY_DIV, x, below));
  return tenon_program_answer(&p);
}

static uint32_t one(void) { return 1; }
static tenon_str name(uint32_t index) { return tenon_text(index == 0 ? NAME : ""); }
static tenon_str facet(uint32_t index) { return tenon_text(index == 0 ? "compute" : ""); }
static void release(void *owner) { (void)owner; }

static const tenon_op_table operators = {sizeof(tenon_op_table), one, name, infer, evaluate, release};
static const tenon_rule_table rules = {sizeof(tenon_rule_table), one, facet, name, program};

/* It has no passes. */
static uint32_t no_passes(void) { return 0; }
static tenon_str no_name(uint32_t index) { (void)index; return tenon_text(""); }
static void *no_run(uint32_t index, tenon_host host, const void *unit, const tenon_module *module) {
  (void)index, (void)host, (void)unit, (void)module;
  return NULL;
}

static const tenon_pass_table passes = {sizeof(tenon_pass_table), no_passes, no_name, no_run};

TENON_PLUGIN(
    TENON_PLUGIN_RECORD("example.c-softsign", "0.1.0", "An operator and its program, in C")
    TENON_OP_RECORD(NAME, "1", "none", "elementwise", "x / (1 + |x|)", "")
    TENON_RULE_RECORD("compute", NAME, "Element by element", ""),
    passes);
