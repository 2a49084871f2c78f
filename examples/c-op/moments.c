/* Mean and variance of each row along an axis, of f32.
 *
 *   %m = c.moments(%x) { axis = 1 }    f32[n, 3]  =>  (f32[n], f32[n])
 *
 * What examples/custom-op does in Rust, in C alone. A plugin with operators or rules says where their tables are before it
 * includes the header. Nothing here is shared between calls, which may come from any thread.
 */
#define TENON_OP_TABLE &operators
#define TENON_RULE_TABLE &rules
#include <tenon_program.h>

#define MAX_RANK 16
#define NAME "c.moments"

/* What a call needs, looked up once. */
typedef struct context {
  tenon_host host;
  const tenon_host_ir *ir;
  const tenon_host_services *services;
  const tenon_host_op *ops;
  const tenon_term_table *terms;
} context;

static bool look_up(context *cx, tenon_host host) {
  cx->host = host;
  cx->ir = (const tenon_host_ir *)tenon_table(host, TENON_HOST_IR_INTERFACE);
  cx->services = (const tenon_host_services *)tenon_table(host, TENON_HOST_SERVICES_INTERFACE);
  cx->ops = (const tenon_host_op *)tenon_table(host, TENON_HOST_OP_INTERFACE);
  if (!cx->ir || !cx->services || !cx->ops) return false;
  cx->terms = cx->ir->terms(host.run);
  return true;
}

static void fail(const context *cx, const char *text) {
  cx->services->fail(cx->host.run, TENON_FAIL_ERROR, tenon_text(text), TENON_NONE);
}

/* The attribute `axis`, counted from the start; -1 and an error when there is no such axis. */
static int64_t axis_of(const context *cx, uint32_t attrs, int64_t rank) {
  uint32_t op = cx->ir->symbol(cx->host.run, tenon_text(NAME));
  uint32_t filled = cx->ops->attributes(cx->host.run, op, attrs);
  int64_t axis = rank;
  if (filled != TENON_NONE) {
    axis = (int64_t)tenon_term_at(cx->terms, tenon_entry(cx->terms, filled, "axis")).bits;
  }
  if (axis < 0) axis += rank;
  if (axis >= 0 && axis < rank) return axis;
  fail(cx, "its attribute `axis` is no axis of the tensor");
  return -1;
}

static uint32_t infer(uint32_t index, tenon_host host, uint32_t attrs, tenon_ids args) {
  context cx;
  tenon_term tensor;
  tenon_ids dims;
  uint32_t kept[MAX_RANK], parts[2], count = 0, i;
  int64_t axis;
  (void)index;
  if (!look_up(&cx, host)) return 0;
  tensor = tenon_term_at(cx.terms, args.data[0]);
  if (tensor.kind != TENON_TERM_TENSOR || tensor.bits != TENON_DTYPE_F32) {
    fail(&cx, "argument 1 must be a tensor of f32");
    return 0;
  }
  /* Of a tensor whose rank is not known, nothing is known of the results' but the element type. */
  if (!(tensor.flags & 1)) {
    if (tensor.len > MAX_RANK) {
      fail(&cx, "argument 1 has more than 16 dimensions");
      return 0;
    }
    axis = axis_of(&cx, attrs, tensor.len);
    if (axis < 0) return 0;
    for (i = 0; i < tensor.len; i++) {
      if (i != (uint32_t)axis) kept[count++] = tenon_child(&tensor, i);
    }
  }
  dims.data = kept;
  dims.len = count;
  parts[0] = parts[1] = cx.ir->intern(host.run, TENON_TERM_TENSOR, tensor.flags, TENON_DTYPE_F32, dims);
  dims.data = parts;
  dims.len = 2;
  return cx.ir->intern(host.run, TENON_TERM_TUPLE, 0, 0, dims);
}

static float element(const tenon_tensor *x, uint64_t at) {
  float value;
  /* The bytes are not necessarily aligned. */
  memcpy(&value, x->data + at * sizeof value, sizeof value);
  return value;
}

static bool evaluate(uint32_t index, tenon_host host, uint32_t attrs, tenon_tensors args, tenon_tensors results) {
  context cx;
  const tenon_tensor *x = args.data;
  uint64_t outer = 1, inner = 1, extent, row, i;
  int64_t axis, dim;
  float *means, *variances;
  (void)index;
  if (!look_up(&cx, host)) return false;
  axis = axis_of(&cx, attrs, x->rank);
  if (axis < 0) return false;
  for (dim = 0; dim < axis; dim++) outer *= x->shape[dim];
  for (dim = axis + 1; dim < (int64_t)x->rank; dim++) inner *= x->shape[dim];
  extent = x->shape[axis];
  means = (float *)(void *)cx.ops->result(host.run, 0);
  variances = (float *)(void *)cx.ops->result(host.run, 1);
  if (!means || !variances || results.len != 2) {
    cx.services->fail(host.run, TENON_FAIL_ERROR, cx.services->last_error(host.run), TENON_NONE);
    return false;
  }
  for (row = 0; row < outer * inner; row++) {
    uint64_t first = row / inner * extent * inner + row % inner;
    double mean = 0, squares = 0;
    for (i = 0; i < extent; i++) mean += element(x, first + i * inner);
    mean /= (double)extent;
    for (i = 0; i < extent; i++) {
      double distance = element(x, first + i * inner) - mean;
      squares += distance * distance;
    }
    means[row] = (float)mean;
    variances[row] = (float)(squares / (double)extent);
  }
  return true;
}

static uint32_t count(void) { return 1; }
static tenon_str name(uint32_t index) { return tenon_text(index == 0 ? NAME : ""); }
/* Nothing was handed over by `give`. */
static void release(void *owner) { (void)owner; }

static const tenon_op_table operators = {sizeof(tenon_op_table), count, name, infer, evaluate, release};

/* The number of elements of a tensor of f32; -1 when that is not known. */
static int64_t elements_of(const context *cx, uint32_t type) {
  tenon_term tensor = tenon_term_at(cx->terms, type);
  int64_t product = 1;
  uint32_t i;
  if (tensor.kind != TENON_TERM_TENSOR || tensor.flags & 1) return -1;
  for (i = 0; i < tensor.len; i++) {
    tenon_term dim = tenon_term_at(cx->terms, tenon_child(&tensor, i));
    if (dim.kind != TENON_TERM_INT) return -1;
    product *= (int64_t)dim.bits;
  }
  return product;
}

/* The rule of the facet `cost` about a call: a list of two numbers, operations and bytes. Each element is added, compared with
 * the mean, squared and added again. Where a dimension is a symbol it declines, and nobody knows the cost. */
static bool cost(uint32_t index, tenon_host host, tenon_transaction *transaction, tenon_ids nodes, uint32_t data) {
  context cx;
  const tenon_host_rule *asked = (const tenon_host_rule *)tenon_table(host, TENON_HOST_RULE_INTERFACE);
  tenon_body body;
  tenon_term result;
  tenon_ids none = {NULL, 0}, both;
  uint32_t call, numbers[2];
  int64_t elements, rows;
  (void)index, (void)data;
  if (!look_up(&cx, host) || !asked || nodes.len == 0) return false;
  call = nodes.data[0];
  body = tenon_body_now(cx.ir, transaction);
  /* The first operand is what is called. */
  elements = elements_of(&cx, tenon_node_at(&body, tenon_operand(&body, call, 1)).ty);
  result = tenon_term_at(cx.terms, tenon_node_at(&body, call).ty);
  rows = elements_of(&cx, tenon_child(&result, 0));
  if (elements < 0 || rows < 0) return true;
  numbers[0] = cx.ir->intern(host.run, TENON_TERM_INT, 0, (uint64_t)(4 * elements), none);
  numbers[1] = cx.ir->intern(host.run, TENON_TERM_INT, 0, (uint64_t)(4 * (elements + 2 * rows)), none);
  both.data = numbers;
  both.len = 2;
  return asked->answer(host.run, none, cx.ir->intern(host.run, TENON_TERM_LIST, 0, 0, both));
}

/* The element of `x` at a place of the rows and one along the axis, which is the last of the block's. */
static uint32_t along(tenon_program *p, uint32_t x, const tenon_axes *all, uint32_t axis) {
  uint32_t place[MAX_RANK] = {0}, i;
  for (i = 0; i < all->count; i++) place[i] = i == axis ? all->at[all->count - 1] : all->at[i - (i > axis)];
  return tenon_load(p, x, place, all->count);
}

/* The rule of the facet `compute`: the sums of the rows, their means, and the sums of how far elements lie from these. It says
 * nothing of how that runs, and extents may be symbols. */
static bool program(uint32_t index, tenon_host host, tenon_transaction *transaction, tenon_ids nodes, uint32_t data) {
  context cx;
  tenon_program p;
  tenon_axes row, all;
  uint32_t x, dims[MAX_RANK], rows = 0, i, rank, extent, zero, size, sum, mean, squares, value;
  int64_t axis;
  (void)index, (void)nodes;
  if (!look_up(&cx, host) || !tenon_program_begin(&p, host, transaction, NAME, data)) return false;
  x = p.inputs[0];
  rank = tenon_rank(&p, x);
  axis = axis_of(&cx, p.attrs, rank);
  if (axis < 0) return false;
  for (i = 0; i < rank; i++) {
    if (i != (uint32_t)axis) dims[rows++] = tenon_dim(&p, x, i);
  }
  extent = tenon_dim(&p, x, (uint32_t)axis);
  size = tenon_cast(&p, tenon_extent(&p, extent), TENON_DTYPE_F32);
  zero = tenon_float(&p, TENON_DTYPE_F32, 0);
  sum = tenon_temporary(&p, "sum", TENON_DTYPE_F32, dims, rows);
  mean = tenon_temporary(&p, "mean", TENON_DTYPE_F32, dims, rows);
  squares = tenon_temporary(&p, "squares", TENON_DTYPE_F32, dims, rows);

  all = tenon_axes_of(&p, mean);
  tenon_add_axis(&p, &all, extent, true);
  tenon_reduce(&p, "sum", &all, TENON_BINARY_ADD, zero, sum, all.at, rows, along(&p, x, &all, (uint32_t)axis));

  row = tenon_axes_of(&p, mean);
  value = tenon_reduced(&p, sum, row.at, rows, extent, zero);
  tenon_set(&p, "mean", &row, mean, row.at, rows, tenon_binary(&p, TENON_BINARY_DIV, value, size));

  all = tenon_axes_of(&p, mean);
  tenon_add_axis(&p, &all, extent, true);
  value = tenon_binary(&p, TENON_BINARY_SUB, along(&p, x, &all, (uint32_t)axis), tenon_load(&p, mean, all.at, rows));
  value = tenon_binary(&p, TENON_BINARY_MUL, value, value);
  tenon_reduce(&p, "squares", &all, TENON_BINARY_ADD, zero, squares, all.at, rows, value);

  row = tenon_axes_of(&p, mean);
  tenon_set(&p, "means", &row, p.outputs[0], row.at, rows, tenon_load(&p, mean, row.at, rows));
  row = tenon_axes_of(&p, mean);
  value = tenon_reduced(&p, squares, row.at, rows, extent, zero);
  tenon_set(&p, "variances", &row, p.outputs[1], row.at, rows, tenon_binary(&p, TENON_BINARY_DIV, value, size));
  return tenon_program_answer(&p);
}

static uint32_t rule_count(void) { return 2; }
static tenon_str facet(uint32_t index) { return tenon_text(index == 0 ? "compute" : index == 1 ? "cost" : ""); }
static tenon_str rule_key(uint32_t index) { return tenon_text(index < 2 ? NAME : ""); }
static bool apply(uint32_t index, tenon_host host, tenon_transaction *transaction, tenon_ids nodes, uint32_t data) {
  return (index == 0 ? program : cost)(index, host, transaction, nodes, data);
}

static const tenon_rule_table rules = {sizeof(tenon_rule_table), rule_count, facet, rule_key, apply};

/* It has no passes. */
static uint32_t no_passes(void) { return 0; }
static tenon_str no_name(uint32_t index) { (void)index; return tenon_text(""); }
static void *no_run(uint32_t index, tenon_host host, const void *unit, const tenon_module *module) {
  (void)index, (void)host, (void)unit, (void)module;
  return NULL;
}

static const tenon_pass_table passes = {sizeof(tenon_pass_table), no_passes, no_name, no_run};

TENON_PLUGIN(
    TENON_PLUGIN_RECORD("example.c-op", "0.1.0", "An operator written in C")
    TENON_OP_RECORD(NAME, "1", "none", "reduction", "Mean and variance along an axis",
        TENON_KEY("attrs", "[{\"name\":\"axis\",\"kind\":\"int\",\"default\":-1,"
                           "\"help\":\"the axis whose elements are one row\"}]"))
    TENON_RULE_RECORD("compute", NAME, "Sums, means, and sums of squares", "")
    TENON_RULE_RECORD("cost", NAME, "Four operations for each element", ""),
    passes);
