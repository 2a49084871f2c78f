/* Removes multiplications by one and divisions by one.
 *
 *   %a = multiply(%x, const(f32[], [1]))        %b = exp(%x)
 *   %b = exp(%a)                           =>
 *
 * Multiplying or dividing by one changes no number, not even a NaN's class, an infinity or the sign of a zero.
 * The call goes only where its type is that of what it stands for: a factor that widens the shape stays. A function
 * that calls anything but pure operators is left alone: it may write memory, and a product of memory is what was there
 * when it was computed.
 *
 * A function pass may run on several functions at once, so nothing here is shared between runs.
 */
#include <tenon_plugin.h>

/* What a run needs, looked up once. */
typedef struct context {
  tenon_host host;
  const tenon_host_ir *ir;
  const tenon_host_services *services;
  const tenon_term_table *terms;
} context;

static void fail(const context *cx, const char *text, uint32_t node) {
  cx->services->fail(cx->host.run, TENON_FAIL_ERROR, tenon_text(text), node);
}

/* Whether the elements of a constant of this dtype are all one. */
static bool is_one(const context *cx, const tenon_constant *constant) {
  static const float f32 = 1.0f;
  static const double f64 = 1.0;
  static const int32_t i32 = 1;
  static const int64_t i64 = 1;
  const void *one;
  size_t size, at;
  switch (tenon_term_at(cx->terms, constant->ty).bits) {
    case TENON_DTYPE_F32: one = &f32, size = sizeof f32; break;
    case TENON_DTYPE_F64: one = &f64, size = sizeof f64; break;
    case TENON_DTYPE_I32: one = &i32, size = sizeof i32; break;
    case TENON_DTYPE_I64: one = &i64, size = sizeof i64; break;
    default: return false;
  }
  for (at = 0; at + size <= constant->len; at += size) {
    if (memcmp(constant->data + at, one, size) != 0) return false;
  }
  return constant->len > 0;
}

static bool is_one_at(const context *cx, const tenon_body *body, uint32_t index) {
  tenon_node node = tenon_node_at(body, index);
  tenon_constant constant;
  if (node.kind != TENON_KIND_CONSTANT) return false;
  constant = tenon_constant_at(body, node.data);
  return is_one(cx, &constant);
}

/* What a call stands for; TENON_NONE when it does something. */
static uint32_t stands_for(const context *cx, const tenon_body *body, uint32_t index, bool divisions) {
  tenon_node call = tenon_node_at(body, index), callee;
  tenon_str name;
  uint32_t left, right, kept = TENON_NONE;
  if (call.kind != TENON_KIND_CALL || call.len != 3) return TENON_NONE;
  callee = tenon_node_at(body, tenon_operand(body, index, 0));
  if (callee.kind != TENON_KIND_OP) return TENON_NONE;
  name = tenon_string(cx->terms, callee.data);
  left = tenon_operand(body, index, 1);
  right = tenon_operand(body, index, 2);
  if (tenon_str_is(name, "multiply")) {
    if (is_one_at(cx, body, right)) kept = left;
    else if (is_one_at(cx, body, left)) kept = right;
  } else if (divisions && tenon_str_is(name, "divide") && is_one_at(cx, body, right)) {
    kept = left;
  }
  if (kept == TENON_NONE || call.ty == 0 || tenon_node_at(body, kept).ty != call.ty) return TENON_NONE;
  return kept;
}

/* Whether every call of a function is one of a pure operator. */
static bool is_pure(const context *cx, const tenon_body *body) {
  uint32_t index;
  for (index = 0; index < body->node_count; index++) {
    tenon_node callee;
    if (tenon_node_at(body, index).kind != TENON_KIND_CALL) continue;
    callee = tenon_node_at(body, tenon_operand(body, index, 0));
    if (callee.kind != TENON_KIND_OP) return false;
    if (!(cx->services->op_info(cx->host.run, callee.data) & 2)) return false;
  }
  return true;
}

static void *multiply_by_one(const context *cx, const tenon_function *function) {
  tenon_transaction *edit = cx->ir->edit(cx->host.run, function);
  tenon_body body;
  tenon_term option;
  const tenon_function *result;
  uint32_t index, count, options = cx->services->options(cx->host.run);
  bool divisions;
  if (!edit) {
    fail(cx, "the function cannot be edited", TENON_NONE);
    return NULL;
  }
  option = tenon_term_at(cx->terms, tenon_entry(cx->terms, options, "divisions"));
  divisions = option.kind == TENON_TERM_BOOL && option.bits != 0;
  body = tenon_body_now(cx->ir, edit);
  count = is_pure(cx, &body) ? body.node_count : 0;
  /* Operands stand before their users: one loop is a traversal. */
  for (index = 0; index < count; index++) {
    uint32_t kept;
    if (index % 65536 == 65535 && cx->services->is_cancelled(cx->host.run)) {
      cx->ir->abandon(edit);
      cx->services->fail(cx->host.run, TENON_FAIL_CANCELLED, tenon_text("cancelled"), TENON_NONE);
      return NULL;
    }
    kept = stands_for(cx, &body, index, divisions);
    if (kept != TENON_NONE) {
      cx->ir->replace(edit, index, kept);
      body = tenon_body_now(cx->ir, edit);
    }
  }
  /* The very function that was given when nothing was replaced. */
  result = cx->ir->finish(edit);
  if (!result) {
    cx->services->fail(cx->host.run, TENON_FAIL_ERROR, cx->services->last_error(cx->host.run), TENON_NONE);
  }
  return (void *)result;
}

static uint32_t count(void) { return 1; }

static tenon_str name(uint32_t index) { return tenon_text(index == 0 ? "c.MultiplyByOne" : ""); }

static void *run(uint32_t index, tenon_host host, const void *unit, const tenon_module *module) {
  context cx;
  (void)index, (void)module;
  cx.host = host;
  cx.ir = (const tenon_host_ir *)tenon_table(host, TENON_HOST_IR_INTERFACE);
  cx.services = (const tenon_host_services *)tenon_table(host, TENON_HOST_SERVICES_INTERFACE);
  if (!cx.ir || !cx.services) return NULL;
  cx.terms = cx.ir->terms(host.run);
  return multiply_by_one(&cx, (const tenon_function *)unit);
}

static const tenon_pass_table passes = {sizeof(tenon_pass_table), count, name, run};

TENON_PLUGIN(
    TENON_PLUGIN_RECORD("example.c", "0.1.0", "A pass written in C")
    TENON_PASS_RECORD("c.MultiplyByOne", "function", "Removes multiplications and divisions by one.",
        TENON_KEY("opt_level", "1") TENON_TEXT_KEY("phase", "optimize") TENON_KEY("idempotent", "true")
        TENON_KEY("options", "[{\"name\":\"divisions\",\"type\":\"bool\",\"default\":true,"
                             "\"help\":\"divisions as well\"}]")),
    passes);
