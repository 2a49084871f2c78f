/* Tensor programs in C: what a rule of the facet `compute` answers, for any extents, symbols among them.
 *
 *   static bool doubled(uint32_t index, tenon_host host, tenon_transaction *transaction, tenon_ids nodes, uint32_t data) {
 *     tenon_program p;
 *     tenon_axes all;
 *     uint32_t x;
 *     if (!tenon_program_begin(&p, host, transaction, "acme.double", data)) return false;
 *     all = tenon_axes_of(&p, p.outputs[0]);
 *     x = tenon_load(&p, p.inputs[0], all.at, all.count);
 *     tenon_set(&p, "double", &all, p.outputs[0], all.at, all.count, tenon_binary(&p, TENON_BINARY_ADD, x, x));
 *     return tenon_program_answer(&p);
 *   }
 *
 * A program says what is computed, block by block and in order; how its loops run is the business of schedules. What goes wrong is
 * told when it is answered: a function that fails gives TENON_NONE, and so does whatever is made of that.
 *
 * docs/programs.md has the same language in Rust. [one thread] throughout.
 */
#ifndef TENON_PROGRAM_H
#define TENON_PROGRAM_H

#include "tenon_plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most axes that a block has, tensors that a call reads or writes, and blocks and buffers that a program has. */
enum { TENON_MAX_AXES = 32, TENON_MAX_BUFFERS = 64, TENON_MAX_STATEMENTS = 256 };

/* A program that is being written, and the call that it computes. */
typedef struct tenon_program {
  tenon_host host;
  const tenon_host_ir *ir;
  const tenon_host_services *services;
  const tenon_host_rule *rules;
  const tenon_term_table *terms;
  tenon_transaction *transaction;
  /* The operator, a symbol. */
  uint32_t op;
  /* The attributes of the call as they are given, and the target: dictionary terms. */
  uint32_t attrs, target;
  /* The types of the arguments, a list, and that of the result. */
  uint32_t args, out;
  /* How the program may be fused, as the operator says it; a rule may set another one. */
  int64_t pattern;
  /* The buffers: the tensors among the arguments and those of the result, tuples flattened. */
  uint32_t inputs[TENON_MAX_BUFFERS], outputs[TENON_MAX_BUFFERS];
  uint32_t input_count, output_count;
  /* What it does, with the buffers of its own first. */
  uint32_t made[TENON_MAX_STATEMENTS], statements[TENON_MAX_STATEMENTS];
  uint32_t made_count, statement_count;
  bool is_too_long;
} tenon_program;

/* The axes of a block. `at` are its iterators, which are the indices of what stands there. */
typedef struct tenon_axes {
  uint32_t at[TENON_MAX_AXES];
  uint32_t count;
  /* The variable of each loop, how many steps it has, and whether it goes through a reduction. */
  uint32_t loops[TENON_MAX_AXES], extents[TENON_MAX_AXES];
  bool is_reduced[TENON_MAX_AXES];
} tenon_axes;

/* -- Nodes: each gives its number. -- */

/* A node of a type, with two payloads and operands. */
static inline uint32_t tenon_push(tenon_program *p, uint16_t kind, uint32_t ty, uint32_t data, uint32_t aux, uint16_t flags,
                                  uint32_t attrs, const uint32_t *operands, uint32_t count) {
  tenon_node node;
  tenon_ids ids;
  uint32_t i;
  for (i = 0; i < count; i++) {
    if (operands[i] == TENON_NONE) return TENON_NONE;
  }
  memset(&node, 0, sizeof node);
  node.kind = kind;
  node.ty = ty;
  node.data = data;
  node.aux = aux;
  node.flags = flags;
  node.attrs = attrs;
  ids.data = operands;
  ids.len = count;
  return p->ir->push(p->transaction, &node, sizeof node, ids);
}

/* The type of a node, a term; 0 of TENON_NONE. */
static inline uint32_t tenon_type(const tenon_program *p, uint32_t node) {
  tenon_body body;
  if (node == TENON_NONE) return 0;
  body = tenon_body_now(p->ir, p->transaction);
  return node < body.node_count ? tenon_node_at(&body, node).ty : 0;
}

/* The element type of a buffer, or the type of a scalar. */
static inline uint32_t tenon_dtype_of(const tenon_program *p, uint32_t node) {
  return (uint32_t)(tenon_term_at(p->terms, tenon_type(p, node)).bits & 0xffffu);
}

static inline uint32_t tenon_scalar_type(const tenon_program *p, uint32_t dtype) {
  tenon_ids none = {NULL, 0};
  return p->ir->intern(p->host.run, TENON_TERM_SCALAR, 0, dtype | (uint64_t)1 << 16, none);
}

/* How many axes a buffer has, and the dimension of one, a term. */
static inline uint32_t tenon_rank(const tenon_program *p, uint32_t buffer) {
  return tenon_term_at(p->terms, tenon_type(p, buffer)).len;
}

static inline uint32_t tenon_dim(const tenon_program *p, uint32_t buffer, uint32_t axis) {
  tenon_term tensor = tenon_term_at(p->terms, tenon_type(p, buffer));
  return tenon_child(&tensor, axis);
}

/* An integer or truth value of a type, an index, a float. */
static inline uint32_t tenon_int(tenon_program *p, uint32_t dtype, int64_t value) {
  tenon_ids none = {NULL, 0};
  uint32_t term = p->ir->intern(p->host.run, TENON_TERM_INT, 0, (uint64_t)value, none);
  return tenon_push(p, TENON_KIND_INT, tenon_scalar_type(p, dtype), term, 0, 0, 0, NULL, 0);
}

static inline uint32_t tenon_index(tenon_program *p, int64_t value) { return tenon_int(p, TENON_DTYPE_I64, value); }

static inline uint32_t tenon_float(tenon_program *p, uint32_t dtype, double value) {
  tenon_ids none = {NULL, 0};
  uint64_t bits;
  uint32_t term;
  memcpy(&bits, &value, sizeof bits);
  term = p->ir->intern(p->host.run, TENON_TERM_FLOAT, 0, bits, none);
  return tenon_push(p, TENON_KIND_FLOAT, tenon_scalar_type(p, dtype), term, 0, 0, 0, NULL, 0);
}

/* A dimension as an index. */
static inline uint32_t tenon_extent(tenon_program *p, uint32_t dim) {
  tenon_term term = tenon_term_at(p->terms, dim);
  if (term.kind == TENON_TERM_INT) return tenon_index(p, (int64_t)term.bits);
  return tenon_push(p, TENON_KIND_PRIM, tenon_scalar_type(p, TENON_DTYPE_I64), dim, 0, 0, 0, NULL, 0);
}

/* `a op b`, of one type. `/` truncates on integers; TENON_BINARY_FLOOR_DIV and _MOD round down. */
static inline uint32_t tenon_binary(tenon_program *p, enum tenon_binary_op op, uint32_t a, uint32_t b) {
  bool is_truth = op >= TENON_BINARY_EQ && op <= TENON_BINARY_GE;
  uint32_t ty = is_truth ? tenon_scalar_type(p, TENON_DTYPE_BOOL) : tenon_type(p, a);
  uint32_t both[2];
  both[0] = a;
  both[1] = b;
  return tenon_push(p, TENON_KIND_BINARY, ty, (uint32_t)op, 0, 0, 0, both, 2);
}

/* One of two values, both of which are evaluated. */
static inline uint32_t tenon_select(tenon_program *p, uint32_t condition, uint32_t then, uint32_t otherwise) {
  uint32_t all[3];
  all[0] = condition;
  all[1] = then;
  all[2] = otherwise;
  return tenon_push(p, TENON_KIND_SELECT, tenon_type(p, then), 0, 0, 0, 0, all, 3);
}

/* A value of another type. */
static inline uint32_t tenon_cast(tenon_program *p, uint32_t value, uint32_t dtype) {
  if (value != TENON_NONE && tenon_dtype_of(p, value) == dtype) return value;
  return tenon_push(p, TENON_KIND_CAST, tenon_scalar_type(p, dtype), 0, 0, 0, 0, &value, 1);
}

/* A function of a scalar, such as "exp"; docs/ir.md lists them. */
static inline uint32_t tenon_call(tenon_program *p, const char *name, uint32_t value) {
  uint32_t symbol = p->ir->symbol(p->host.run, tenon_text(name));
  return tenon_push(p, TENON_KIND_INTRINSIC, tenon_type(p, value), symbol, 0, 0, 0, &value, 1);
}

/* An element of a buffer. */
static inline uint32_t tenon_load(tenon_program *p, uint32_t buffer, const uint32_t *at, uint32_t rank) {
  uint32_t operands[TENON_MAX_AXES + 1], i;
  if (rank > TENON_MAX_AXES) return TENON_NONE;
  operands[0] = buffer;
  for (i = 0; i < rank; i++) operands[i + 1] = at[i];
  return tenon_push(p, TENON_KIND_LOAD, tenon_scalar_type(p, tenon_dtype_of(p, buffer)), 0, 0, 0, 0, operands, rank + 1);
}

/* A statement that writes an element. */
static inline uint32_t tenon_store(tenon_program *p, uint32_t buffer, uint32_t value, const uint32_t *at, uint32_t rank) {
  uint32_t operands[TENON_MAX_AXES + 2], i;
  if (rank > TENON_MAX_AXES) return TENON_NONE;
  operands[0] = buffer;
  operands[1] = value;
  for (i = 0; i < rank; i++) operands[i + 2] = at[i];
  return tenon_push(p, TENON_KIND_STORE, 0, 0, 0, 0, 0, operands, rank + 2);
}

/* Two statements, one after the other. */
static inline uint32_t tenon_then(tenon_program *p, uint32_t first, uint32_t second) {
  uint32_t both[2];
  both[0] = first;
  both[1] = second;
  return tenon_push(p, TENON_KIND_SEQ, 0, 0, 0, 0, 0, both, 2);
}

/* A statement that runs where a condition holds. */
static inline uint32_t tenon_when(tenon_program *p, uint32_t condition, uint32_t then) {
  uint32_t both[2];
  both[0] = condition;
  both[1] = then;
  return tenon_push(p, TENON_KIND_IF_STMT, 0, 0, 0, 0, 0, both, 2);
}

/* A buffer of a name and a tensor type. */
static inline uint32_t tenon_buffer(tenon_program *p, const char *name, uint32_t type) {
  uint32_t symbol = p->ir->symbol(p->host.run, tenon_text(name));
  return tenon_push(p, TENON_KIND_BUFFER, type, symbol, 0, 0, 0, NULL, 0);
}

/* -- Blocks -- */

/* A buffer of the program's own, of these dimensions. */
static inline uint32_t tenon_temporary(tenon_program *p, const char *name, uint32_t dtype, const uint32_t *dims, uint32_t rank) {
  tenon_ids shape;
  uint32_t buffer;
  shape.data = dims;
  shape.len = rank;
  buffer = tenon_buffer(p, name, p->ir->intern(p->host.run, TENON_TERM_TENSOR, 0, dtype, shape));
  if (p->made_count == TENON_MAX_STATEMENTS) {
    p->is_too_long = true;
  } else {
    p->made[p->made_count++] = tenon_push(p, TENON_KIND_ALLOC, 0, 0, 0, 0, 0, &buffer, 1);
  }
  return buffer;
}

/* One more axis, of a dimension: what a reduction goes through, or of which each step is on its own. */
static inline void tenon_add_axis(tenon_program *p, tenon_axes *axes, uint32_t dim, bool is_reduced) {
  static const char names[] = "ijklmnrst";
  char loop[] = "i", iterator[] = "vi";
  uint32_t at = axes->count, index = tenon_scalar_type(p, TENON_DTYPE_I64);
  if (at == TENON_MAX_AXES) {
    p->is_too_long = true;
    return;
  }
  loop[0] = iterator[1] = names[is_reduced ? 6 + at % 3 : at % 6];
  axes->loops[at] = tenon_push(p, TENON_KIND_VAR, index, p->ir->symbol(p->host.run, tenon_text(loop)), 0, 0, 0, NULL, 0);
  axes->at[at] = tenon_push(p, TENON_KIND_VAR, index, p->ir->symbol(p->host.run, tenon_text(iterator)), 0, 0, 0, NULL, 0);
  axes->extents[at] = tenon_extent(p, dim);
  axes->is_reduced[at] = is_reduced;
  axes->count++;
}

/* An axis for each of a buffer's. */
static inline tenon_axes tenon_axes_of(tenon_program *p, uint32_t buffer) {
  tenon_axes axes;
  uint32_t i, rank = tenon_rank(p, buffer);
  memset(&axes, 0, sizeof axes);
  for (i = 0; i < rank; i++) tenon_add_axis(p, &axes, tenon_dim(p, buffer, i), false);
  return axes;
}

/* A block with these axes, in loops over them: `init`, or TENON_NONE, runs when a reduction begins, `body` in each step. */
static inline void tenon_block(tenon_program *p, const char *name, const tenon_axes *axes, uint32_t init, uint32_t body) {
  uint32_t operands[2 * TENON_MAX_AXES + 2], kinds[TENON_MAX_AXES + 2], count = 0, i, stmt, zero = tenon_index(p, 0);
  uint32_t spatial = p->ir->symbol(p->host.run, tenon_text("spatial"));
  uint32_t reduce = p->ir->symbol(p->host.run, tenon_text("reduce"));
  tenon_ids none = {NULL, 0}, list;
  for (i = 0; i < axes->count; i++) {
    operands[count++] = axes->at[i];
    operands[count++] = axes->loops[i];
    kinds[i] = axes->is_reduced[i] ? reduce : spatial;
  }
  /* What it reads and writes is found out by who needs it. */
  kinds[i] = kinds[i + 1] = p->ir->intern(p->host.run, TENON_TERM_INT, 0, 0, none);
  list.data = kinds;
  list.len = axes->count + 2;
  if (init != TENON_NONE) operands[count++] = init;
  operands[count++] = body;
  stmt = tenon_push(p, TENON_KIND_BLOCK, 0, p->ir->symbol(p->host.run, tenon_text(name)),
                    p->ir->intern(p->host.run, TENON_TERM_LIST, 0, 0, list), init != TENON_NONE, 0, operands, count);
  for (i = axes->count; i-- > 0;) {
    uint32_t parts[4];
    parts[0] = axes->loops[i];
    parts[1] = zero;
    parts[2] = axes->extents[i];
    parts[3] = stmt;
    stmt = tenon_push(p, TENON_KIND_FOR, 0, TENON_LOOP_SERIAL, 0, 0, 0, parts, 4);
  }
  if (p->statement_count == TENON_MAX_STATEMENTS) {
    p->is_too_long = true;
  } else {
    p->statements[p->statement_count++] = stmt;
  }
}

/* Writes, at each place of the axes, an element of a buffer. */
static inline void tenon_set(tenon_program *p, const char *name, const tenon_axes *axes, uint32_t buffer, const uint32_t *at,
                             uint32_t rank, uint32_t value) {
  tenon_block(p, name, axes, TENON_NONE, tenon_store(p, buffer, value, at, rank));
}

/* Combines into an element of a buffer, by `op`, what each place of the axes that are reduced has: it starts from `identity`. Of no
 * places nothing is written, so it is read by `tenon_reduced`. */
static inline void tenon_reduce(tenon_program *p, const char *name, const tenon_axes *axes, enum tenon_binary_op op,
                                uint32_t identity, uint32_t buffer, const uint32_t *at, uint32_t rank, uint32_t term) {
  uint32_t init = tenon_store(p, buffer, identity, at, rank);
  uint32_t so_far = tenon_load(p, buffer, at, rank);
  if (init == TENON_NONE) {
    p->is_too_long = true;
    return;
  }
  tenon_block(p, name, axes, init, tenon_store(p, buffer, tenon_binary(p, op, so_far, term), at, rank));
}

/* An element of what was reduced along an axis of this dimension: the identity where there was nothing. */
static inline uint32_t tenon_reduced(tenon_program *p, uint32_t buffer, const uint32_t *at, uint32_t rank, uint32_t dim,
                                     uint32_t identity) {
  tenon_term term = tenon_term_at(p->terms, dim);
  uint32_t value = tenon_load(p, buffer, at, rank);
  if (term.kind == TENON_TERM_INT) return term.bits == 0 ? identity : value;
  return tenon_select(p, tenon_binary(p, TENON_BINARY_EQ, tenon_extent(p, dim), tenon_index(p, 0)), identity, value);
}

/* -- The whole -- */

/* Looks up what a rule of the facet `compute` is asked about, and makes the buffers. False, and told, when it is not whole. */
static inline bool tenon_program_begin(tenon_program *p, tenon_host host, tenon_transaction *transaction, const char *op,
                                       uint32_t data) {
  tenon_term asked, list;
  uint32_t i;
  char name[] = "in00";
  memset(p, 0, sizeof *p);
  p->host = host;
  p->ir = (const tenon_host_ir *)tenon_table(host, TENON_HOST_IR_INTERFACE);
  p->services = (const tenon_host_services *)tenon_table(host, TENON_HOST_SERVICES_INTERFACE);
  p->rules = (const tenon_host_rule *)tenon_table(host, TENON_HOST_RULE_INTERFACE);
  if (!p->ir || !p->services || !p->rules || !transaction) return false;
  p->transaction = transaction;
  p->terms = p->ir->terms(host.run);
  p->op = p->ir->symbol(host.run, tenon_text(op));
  asked = tenon_term_at(p->terms, data);
  if (asked.kind != TENON_TERM_LIST || asked.len < 7) {
    p->services->fail(host.run, TENON_FAIL_ERROR, tenon_text("a question of `compute` is not whole"), TENON_NONE);
    return false;
  }
  p->attrs = tenon_child(&asked, 0);
  p->args = tenon_child(&asked, 1);
  p->out = tenon_child(&asked, 2);
  p->target = tenon_child(&asked, 3);
  p->pattern = (int64_t)tenon_term_at(p->terms, tenon_child(&asked, 6)).bits;
  list = tenon_term_at(p->terms, tenon_child(&asked, 4));
  p->input_count = list.len;
  if (list.len > TENON_MAX_BUFFERS || tenon_term_at(p->terms, tenon_child(&asked, 5)).len > TENON_MAX_BUFFERS) {
    p->services->fail(host.run, TENON_FAIL_ERROR, tenon_text("a call has more than 64 tensors"), TENON_NONE);
    return false;
  }
  for (i = 0; i < list.len; i++) {
    name[2] = (char)('0' + i / 10);
    name[3] = (char)('0' + i % 10);
    p->inputs[i] = tenon_buffer(p, name, tenon_child(&list, i));
  }
  list = tenon_term_at(p->terms, tenon_child(&asked, 5));
  p->output_count = list.len;
  for (i = 0; i < list.len; i++) p->outputs[i] = tenon_buffer(p, "out", tenon_child(&list, i));
  return true;
}

/* Answers with the program. False, and told, when something of it could not be made. */
static inline bool tenon_program_answer(tenon_program *p) {
  uint32_t all[2 * TENON_MAX_STATEMENTS], entries[4], count = 0, i, body, root;
  tenon_ids none = {NULL, 0}, dict, answer;
  for (i = 0; i < p->made_count; i++) all[count++] = p->made[i];
  for (i = 0; i < p->statement_count; i++) all[count++] = p->statements[i];
  body = count == 1 ? all[0] : tenon_push(p, TENON_KIND_SEQ, 0, 0, 0, 0, 0, all, count);
  entries[0] = p->ir->symbol(p->host.run, tenon_text("op_name"));
  entries[1] = p->op;
  entries[2] = p->ir->symbol(p->host.run, tenon_text("op_pattern"));
  entries[3] = p->ir->intern(p->host.run, TENON_TERM_INT, 0, (uint64_t)p->pattern, none);
  dict.data = entries;
  dict.len = 4;
  count = 0;
  for (i = 0; i < p->input_count; i++) all[count++] = p->inputs[i];
  for (i = 0; i < p->output_count; i++) all[count++] = p->outputs[i];
  all[count++] = body;
  root = tenon_push(p, TENON_KIND_PRIM_FUNC, 0, p->output_count, 0, 0,
                    p->ir->intern(p->host.run, TENON_TERM_DICT, 0, 0, dict), all, count);
  if (p->is_too_long || root == TENON_NONE) {
    tenon_str why = p->is_too_long ? tenon_text("the program has too many axes, buffers or blocks") : p->services->last_error(p->host.run);
    p->services->fail(p->host.run, TENON_FAIL_ERROR, why, TENON_NONE);
    return false;
  }
  answer.data = &root;
  answer.len = 1;
  return p->rules->answer(p->host.run, answer, 0);
}

#ifdef __cplusplus
}
#endif

#endif
