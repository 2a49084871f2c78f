/* tenon_plugin.h: the border between Tenon and a plugin that is written in C.
 *
 * Generated from plugin-api/src/abi by `TENON_BLESS=1 cargo test -p tenon-plugin-api --test generated`.
 * docs/abi.md explains it; examples/c-pass is a whole plugin.
 *
 * C11 or C++11, 64-bit, gcc or clang. Nothing is linked: a plugin imports no symbol of the host.
 *
 * Every function says who owns what, how long it lives, and on which thread it may be called:
 *   [any thread]  from any thread, at any time while its arguments live;
 *   [one thread]  from the thread that holds the transaction or the changed module, one call at a time.
 * What no line says is borrowed for the call. Nothing may unwind or longjmp across the border. A table only
 * grows, at its end: ask TENON_HAS for an entry that is marked "Since". Everything here is zero-initialised
 * to mean "nothing", and an array of length 0 may be NULL.
 */
#ifndef TENON_PLUGIN_H
#define TENON_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
#define TENON_ASSERT(condition) static_assert(condition, #condition)
extern "C" {
#else
#define TENON_ASSERT(condition) _Static_assert(condition, #condition)
#endif

#define TENON_EXPORT __attribute__((visibility("default")))

/* Version of the root. It has only ever been 1. */
#define TENON_ROOT_ABI 1u
/* Stands for "none" where a node is returned or expected. */
#define TENON_NONE 0xffffffffu

/* How a pass fails: the argument of `fail`. */
enum { TENON_FAIL_ERROR = 1, TENON_FAIL_PANIC = 2, TENON_FAIL_CANCELLED = 3 };
/* How serious a report is: the argument of `report`. */
enum { TENON_REPORT_ERROR = 1, TENON_REPORT_WARNING = 2, TENON_REPORT_NOTE = 3, TENON_REPORT_TRACE = 4 };

/* What a node is. A code that is not here is one of a later version. */
enum tenon_kind {
  /* A tensor known at compile time. `data`: its number in the body's constants. */
  TENON_KIND_CONSTANT = 1,
  /* A variable. `data`: the symbol of its name hint. Identity is the node, not the name. */
  TENON_KIND_VAR = 2,
  /* A function of the module. `data`: the symbol of its name. */
  TENON_KIND_GLOBAL = 3,
  /* An operator. `data`: the symbol of its name. */
  TENON_KIND_OP = 4,
  /* A function outside of the module. `data`: the symbol of its link name. */
  TENON_KIND_EXTERN = 5,
  /* A tuple of its operands. */
  TENON_KIND_TUPLE = 6,
  /* Field `data` of the tuple that is its only operand. */
  TENON_KIND_TUPLE_GET_ITEM = 7,
  /* A call. Operands: callee, then arguments. `attrs`: the attributes of the call. */
  TENON_KIND_CALL = 8,
  /* A choice. Operands: condition (a bool scalar tensor), then-value, else-value. */
  TENON_KIND_IF = 9,
  /* Bindings, then a result. Operands: variable, value, variable, value, …, result. `data`: a list
   * term with one integer per block, `2 * bindings + is_dataflow`. */
  TENON_KIND_LET = 10,
  /* A graph function. Operands: parameters (variables), then the body. `data`: the term of the declared
   * return type or 0. `flags` bit 0: private to the module. `attrs`: its attributes. */
  TENON_KIND_FUNCTION = 11,
  /* A shape value. `data`: a shape type term that holds the dimensions. */
  TENON_KIND_SHAPE = 12,
  /* A scalar known from dimensions. `data`: the dimension term. */
  TENON_KIND_PRIM = 13,
  /* A tensor program. Operands: parameters (buffers or scalar variables), then the body. `data`: how
   * many of the last parameters are written. `flags` and `attrs` as for a function. */
  TENON_KIND_PRIM_FUNC = 64,
  /* A buffer. `ty`: its tensor type. `data`: the symbol of its name. `aux`: the symbol of its memory
   * scope, 0 for `global`. */
  TENON_KIND_BUFFER = 65,
  /* A loop. Operands: variable, first value, number of steps, body. `data`: `LoopKind`. `aux`: the
   * symbol of the thread axis of a thread-bound loop. */
  TENON_KIND_FOR = 66,
  /* A block. Operands: (variable, binding) for each iterator, (first value, number of values) for each
   * when `flags` bit 1 is set, a predicate when bit 2 is set, read regions, written regions, an initial
   * statement when bit 0 is set, the body. `data`: the symbol of its name. `aux`: a list term: the kind
   * of each iterator (a string), the number of reads, the number of writes. */
  TENON_KIND_BLOCK = 67,
  /* A part of a buffer. Operands: buffer, then (first index, extent) for each axis. */
  TENON_KIND_REGION = 68,
  /* Writes an element. Operands: buffer, value, indices. One index into a buffer of another rank counts
   * its elements in row-major order; a vector of indices writes a vector. */
  TENON_KIND_STORE = 69,
  /* Reads an element. Operands: buffer, indices, which are as for `TENON_KIND_STORE`. */
  TENON_KIND_LOAD = 70,
  /* Statements in order. */
  TENON_KIND_SEQ = 71,
  /* Makes the buffer that is its operand, until the end of the enclosing sequence. */
  TENON_KIND_ALLOC = 72,
  /* Names a scalar until the end of the enclosing sequence. Operands: variable, value. */
  TENON_KIND_LET_STMT = 73,
  /* A conditional statement. Operands: condition, then-statement, optional else-statement. */
  TENON_KIND_IF_STMT = 74,
  /* Evaluates its operand for its effect. */
  TENON_KIND_EVALUATE = 75,
  /* An integer or bool literal of scalar type `ty`. `data`: the integer term. */
  TENON_KIND_INT = 76,
  /* A float literal of scalar type `ty`. `data`: the float term. */
  TENON_KIND_FLOAT = 77,
  /* Two operands of one type. `data`: `BinaryOp`. */
  TENON_KIND_BINARY = 78,
  /* Operands: condition, then-value, else-value. Both values are evaluated. */
  TENON_KIND_SELECT = 79,
  /* Converts its operand to scalar type `ty`. */
  TENON_KIND_CAST = 80,
  /* A call of a scalar function. `data`: the symbol of its name. */
  TENON_KIND_INTRINSIC = 81,
  /* The vector `base, base + stride, …`. Operands: base, stride. The lanes stand in `ty`. */
  TENON_KIND_RAMP = 82,
  /* A vector of equal lanes. Operand: the scalar. */
  TENON_KIND_BROADCAST = 83,
};

/* What a term is. A code that is not here is one of a later version. */
enum tenon_term_kind {
  /* The absent term, id 0. */
  TENON_TERM_NONE = 0,
  /* An integer, `bits` as i64. Also a constant dimension. */
  TENON_TERM_INT = 1,
  /* A float, `bits` as the bits of an f64. */
  TENON_TERM_FLOAT = 2,
  /* A truth value, `bits` 0 or 1. */
  TENON_TERM_BOOL = 3,
  /* UTF-8 text. */
  TENON_TERM_STR = 4,
  /* A list of its children. */
  TENON_TERM_LIST = 5,
  /* Key, value, key, value, …; keys are strings in ascending order of their text. */
  TENON_TERM_DICT = 6,
  /* A symbolic dimension; its child is the name. It is an integer that is not negative. */
  TENON_TERM_DIM_SYMBOL = 16,
  /* The sum of its children. */
  TENON_TERM_DIM_ADD = 17,
  /* The product of its children. */
  TENON_TERM_DIM_MUL = 18,
  /* First child divided by second, rounded down. */
  TENON_TERM_DIM_FLOOR_DIV = 19,
  /* Remainder of the division rounded down. */
  TENON_TERM_DIM_FLOOR_MOD = 20,
  /* The smaller of two. */
  TENON_TERM_DIM_MIN = 21,
  /* The larger of two. */
  TENON_TERM_DIM_MAX = 22,
  /* A scalar or vector; `bits` = dtype code + (lanes << 16). */
  TENON_TERM_SCALAR = 32,
  /* A tensor; `bits` = dtype code, children are dimensions. `flags` bit 0: the rank is unknown. */
  TENON_TERM_TENSOR = 33,
  /* A tuple of its children. */
  TENON_TERM_TUPLE = 34,
  /* A function; children are the parameters, then the result. */
  TENON_TERM_FUNC = 35,
  /* A shape; children are its dimensions. `flags` bit 0: the rank is unknown. */
  TENON_TERM_SHAPE = 36,
  /* An opaque runtime object; its child is the name of its class. */
  TENON_TERM_OBJECT = 37,
  /* A tensor that lies on a device; children are its type without the device, a `TENSOR`, and the
   * device's name. */
  TENON_TERM_PLACED = 38,
};

/* The type of one element. A code that is not here is one of a later version. */
enum tenon_dtype {
  TENON_DTYPE_F64 = 1,
  TENON_DTYPE_F32 = 2,
  TENON_DTYPE_F16 = 3,
  TENON_DTYPE_BF16 = 4,
  TENON_DTYPE_F8E4M3 = 5,
  TENON_DTYPE_F8E5M2 = 6,
  TENON_DTYPE_I4 = 7,
  TENON_DTYPE_I8 = 8,
  TENON_DTYPE_I16 = 9,
  TENON_DTYPE_I32 = 10,
  TENON_DTYPE_I64 = 11,
  TENON_DTYPE_U8 = 12,
  TENON_DTYPE_U16 = 13,
  TENON_DTYPE_U32 = 14,
  TENON_DTYPE_U64 = 15,
  TENON_DTYPE_BOOL = 16,
  TENON_DTYPE_F8E4M3FNUZ = 17,
  TENON_DTYPE_F8E5M2FNUZ = 18,
  TENON_DTYPE_F8E8M0 = 19,
  TENON_DTYPE_F4E2M1 = 20,
  TENON_DTYPE_U4 = 21,
  TENON_DTYPE_I2 = 22,
  TENON_DTYPE_U2 = 23,
};

/* How a loop runs. A code that is not here is one of a later version. */
enum tenon_loop_kind {
  TENON_LOOP_SERIAL = 0,
  TENON_LOOP_PARALLEL = 1,
  TENON_LOOP_VECTORIZED = 2,
  TENON_LOOP_UNROLLED = 3,
  TENON_LOOP_THREAD_BOUND = 4,
};

/* A binary scalar operation. A code that is not here is one of a later version. */
enum tenon_binary_op {
  TENON_BINARY_ADD = 0,
  TENON_BINARY_SUB = 1,
  TENON_BINARY_MUL = 2,
  TENON_BINARY_DIV = 3,
  TENON_BINARY_FLOOR_DIV = 4,
  TENON_BINARY_FLOOR_MOD = 5,
  TENON_BINARY_MIN = 6,
  TENON_BINARY_MAX = 7,
  TENON_BINARY_EQ = 8,
  TENON_BINARY_NE = 9,
  TENON_BINARY_LT = 10,
  TENON_BINARY_LE = 11,
  TENON_BINARY_GT = 12,
  TENON_BINARY_GE = 13,
  TENON_BINARY_AND = 14,
  TENON_BINARY_OR = 15,
};


/* UTF-8, not terminated. */
typedef struct tenon_str { const char *data; size_t len; } tenon_str;
typedef struct tenon_bytes { const uint8_t *data; size_t len; } tenon_bytes;
typedef struct tenon_ids { const uint32_t *data; size_t len; } tenon_ids;
typedef struct tenon_field tenon_field;
typedef struct tenon_fields { const tenon_field *data; size_t len; } tenon_fields;
typedef struct tenon_interface tenon_interface;
typedef struct tenon_tensor tenon_tensor;
typedef struct tenon_tensors { const tenon_tensor *data; size_t len; } tenon_tensors;
typedef struct tenon_interfaces { const tenon_interface *data; size_t len; } tenon_interfaces;

/* Handles: counted or owned as the functions say, and never looked into. */
typedef struct tenon_run tenon_run;
typedef struct tenon_function tenon_function;
typedef struct tenon_module tenon_module;
typedef struct tenon_transaction tenon_transaction;

/* One part of what is shared among threads. */
typedef void tenon_item(void *state, uint64_t index);

/* The term table of a context: chunk k holds 1 << (10 + k) terms. Frozen; read it with tenon_term_at. */
typedef struct tenon_term_table {
  /* Bytes from one term to the next. */
  uint32_t stride;
  /* Number of published terms; read it atomically. */
  uint32_t len;
  /* Addresses of the chunks; read them atomically. */
  void *chunks[32];
} tenon_term_table;

/* One field of a record, or one entry of a table. Frozen. */
struct tenon_field {
  /* Its name. */
  tenon_str name;
  /* Its type, as this header writes it; of a function `result(parameters)`. */
  tenon_str ty;
  /* Bytes before it. */
  uint32_t offset;
  /* Bytes that it takes. */
  uint32_t size;
};

/* A table or a record of one side, as data. Frozen. */
struct tenon_interface {
  /* Such as `tenon.pass/1`; of a record its name in C. */
  tenon_str id;
  /* Its layout as this side knows it. */
  tenon_fields layout;
  /* The table, valid for ever; null of a record, and of what this side only uses. */
  const void *table;
};

/* What a plugin exports that is written in C, as the symbol `tenon_plugin_root`. Frozen. */
typedef struct tenon_root {
  /* TENON_ROOT_ABI. */
  uint32_t root_abi;
  /* Zero. */
  uint32_t reserved;
  /* The manifest: its JSON records, one a line. The same text stands in the library's note. */
  tenon_str manifest;
  /* The tables that the plugin offers, and the tables and records that it uses. */
  tenon_interfaces interfaces;
} tenon_root;

/* The host as a plugin is handed it, borrowed for one run of a pass. Frozen. */
typedef struct tenon_host {
  /* The state of this run. */
  const tenon_run *run;
  /* Answers with the interface of an id, or with null. What it answers with is valid for ever. */
  const tenon_interface *(*query)(tenon_str);
} tenon_host;

/* One node of a function body. Its children are `operands[start .. start + len]`, whatever its kind. */
typedef struct tenon_node {
  /* What the node is, see `tenon_kind`. A reader treats a kind it does not know as opaque. */
  uint16_t kind;
  /* Bits whose meaning belongs to the kind. */
  uint16_t flags;
  /* The term of the node's type; 0 while it is not inferred. */
  uint32_t ty;
  /* First operand in the body's operand pool. */
  uint32_t start;
  /* Number of operands. */
  uint32_t len;
  /* Payload whose meaning belongs to the kind: a name, an index, a term, a constant's number. */
  uint32_t data;
  /* Second payload. */
  uint32_t aux;
  /* The term of the attribute dictionary; 0 when empty. */
  uint32_t attrs;
  /* What the node came from; 0 when unknown. With the highest bit the rest is a term: a name, or
   * several. Without it, it is a byte offset, plus one, in the texts that were read. A copy of the node
   * keeps it. */
  uint32_t span;
} tenon_node;

/* One hash-consed term: a type, a dimension, an attribute or a string. */
typedef struct tenon_term {
  /* What the term is, see `tenon_term_kind`. */
  uint16_t kind;
  /* Bits whose meaning belongs to the kind. */
  uint16_t flags;
  /* Number of children, or of bytes for a string. */
  uint32_t len;
  /* The scalar payload: an integer, the bits of a float, a dtype with lanes. */
  uint64_t bits;
  /* `len` child terms (`uint32_t`), or `len` bytes of UTF-8 for a string. Owned by the host for as long
   * as the term table lives. */
  const void *children;
} tenon_term;

/* One constant tensor of a body. */
typedef struct tenon_constant {
  /* The term of its tensor type; all dimensions are integers. */
  uint32_t ty;
  /* The term of its name; 0 when it has none. */
  uint32_t name;
  /* Its bytes, little-endian, row-major, without padding; not necessarily aligned. */
  const uint8_t *data;
  /* Number of bytes. */
  uint64_t len;
} tenon_constant;

/* A borrowed view of one function body, published or inside a transaction. */
typedef struct tenon_body {
  /* Bytes of this record that its writer has filled in. */
  uint32_t size;
  /* The root node: a function or a tensor program. */
  uint32_t root;
  /* Array of `tenon_node`. */
  const void *nodes;
  /* Bytes from one node to the next. */
  uint32_t node_stride;
  /* Number of nodes. */
  uint32_t node_count;
  /* The operand pool. */
  const uint32_t *operands;
  /* Array of `tenon_constant`. */
  const void *constants;
  /* Number of operands in the pool. */
  uint32_t operand_count;
  /* Bytes from one constant to the next. */
  uint32_t constant_stride;
  /* Number of constants. */
  uint32_t constant_count;
  /* Nodes below this number follow replacements; 0 for a published body. */
  uint32_t base_len;
  /* The terms that the body's types, names and attributes refer to. */
  const tenon_term_table *terms;
  /* For each node, what it is replaced by, itself when it is not; may be shorter than the body. */
  const uint32_t *replaced;
  /* Entries of `replaced`. */
  uint32_t replaced_len;
  /* Zero. */
  uint32_t reserved;
} tenon_body;

/* A tensor as a value: row-major, without padding, its elements little-endian. Frozen. */
struct tenon_tensor {
  /* The type of each element, see `tenon_dtype`. */
  uint32_t dtype;
  /* Number of dimensions. */
  uint32_t rank;
  /* The extents, outermost first. */
  const uint64_t *shape;
  /* The bytes, not necessarily aligned; null where only type and shape are told. */
  const uint8_t *data;
  /* Number of bytes. */
  uint64_t len;
  /* What `retain` of tenon.host.op/1 takes to keep the bytes longer than the call; null where only type
   * and shape are told. */
  const void *owner;
};

/* An attribute of a node of a model. Frozen. */
typedef struct tenon_attribute {
  /* What it is, by ONNX's numbers: 1 a float, 2 an integer, 3 a string, 4 a tensor, 6 floats, 7
   * integers, 8 strings; 0 when there is none. */
  uint32_t kind;
  /* Zero. */
  uint32_t reserved;
  /* An integer, or the bits of a float. */
  uint64_t bits;
  /* The bytes of a string, the floats (`float`) or the integers (`int64_t`); of strings their bytes,
   * with a zero behind each. */
  const void *data;
  /* How many they are. */
  uint64_t len;
} tenon_attribute;

/* The passes of a plugin. */
#define TENON_PASS_INTERFACE "tenon.pass/1"
typedef struct tenon_pass_table {
  /* Bytes of this table. An entry that ends behind them is absent. */
  size_t size;
  /* Number of passes. [any thread] */
  uint32_t (*count)(void);
  /* Name of a pass, as the manifest has it, borrowed for ever; empty when there is none. [any thread] */
  tenon_str (*name)(uint32_t index);
  /* Runs a pass on `unit`: a `tenon_module` or a `tenon_function`, by the kind that the manifest says.
   * `unit` and `module` stay the caller's. Returns the resulting function or module, which is the
   * caller's from then on: a count of `unit` itself (`function_retain`, `module_clone`) when nothing
   * changed. Null when the pass failed, after it has told `fail`. [any thread] */
  void *(*run)(uint32_t index, tenon_host host, const void *unit, const tenon_module *module);
} tenon_pass_table;

/* The instruments of a plugin: what watches passes. */
#define TENON_INSTRUMENT_INTERFACE "tenon.instrument/1"
typedef struct tenon_instrument_table {
  /* Bytes of this table. An entry that ends behind them is absent. */
  size_t size;
  /* Number of instruments. [any thread] */
  uint32_t (*count)(void);
  /* Name of an instrument, as the manifest has it, borrowed for ever; empty when there is none. [any
   * thread] */
  tenon_str (*name)(uint32_t index);
  /* Makes an instrument for one context, owned by the caller; null when it cannot. [any thread] */
  void *(*create)(uint32_t index);
  /* Gives an instrument up. [one thread] */
  void (*destroy)(void *instrument);
  /* Tells an instrument of an event: 1 the context is entered, 2 may `pass` run over `before`, 3 it is
   * about to, 4 it made `after` of `before` in so many nanoseconds, 5 it was skipped, 6 it failed, 7
   * the context is left. What an event has nothing of is null, empty or 0. Answers event 2, and true to
   * any other and to events that it does not know; what fails tells `fail`. [one thread] */
  bool (*tell)(void *instrument, tenon_host host, uint32_t event, tenon_str pass, const tenon_module *before, const tenon_module *after, uint64_t nanoseconds);
} tenon_instrument_table;

/* Reads and edits the IR. */
#define TENON_HOST_IR_INTERFACE "tenon.host.ir/1"
typedef struct tenon_host_ir {
  /* Bytes of this table. An entry that ends behind them is absent. */
  size_t size;
  /* Adds an owner of the run's state, which outlives the run for as long as it has one. [any thread] */
  void (*run_retain)(const tenon_run *run);
  /* Takes an owner away. [any thread] */
  void (*run_release)(const tenon_run *run);
  /* The term table, borrowed for as long as the run has an owner. [any thread] */
  const tenon_term_table *(*terms)(const tenon_run *run);
  /* The one term of this kind, payload and children; not for strings. [any thread] */
  uint32_t (*intern)(const tenon_run *run, uint16_t kind, uint16_t flags, uint64_t bits, tenon_ids children);
  /* The one string of these bytes; 0 for what is not UTF-8, and then the pass fails. [any thread] */
  uint32_t (*symbol)(const tenon_run *run, tenon_str text);
  /* Adds an owner of a function. [any thread] */
  void (*function_retain)(const tenon_function *function);
  /* Takes an owner away. [any thread] */
  void (*function_release)(const tenon_function *function);
  /* Writes the first `room` bytes of the function's body, and into its `size` how many those were. The
   * arrays are borrowed for as long as the function has an owner. [any thread] */
  void (*function_body)(const tenon_function *function, tenon_body *body, size_t room);
  /* Starts a transaction, owned by the caller: of `base`, or from nothing when it is null. Null and
   * `last_error` when `base` belongs to another run's terms. [any thread] */
  tenon_transaction *(*edit)(const tenon_run *run, const tenon_function *base);
  /* Gives a transaction up. [one thread] */
  void (*abandon)(tenon_transaction *transaction);
  /* The body as it stands, borrowed until the transaction ends. The record stays where it is; what it
   * says, and where its arrays are, is renewed by every edit. [one thread] */
  const tenon_body *(*transaction_body)(tenon_transaction *transaction);
  /* Adds a node, of which `size` bytes are given; its `start` and `len` are not read. Its type is
   * inferred when it is 0. Returns its number; 0xffffffff and `last_error` when it refers to what is
   * not there, and then `finish` fails. [one thread] */
  uint32_t (*push)(tenon_transaction *transaction, const tenon_node *node, size_t size, tenon_ids operands);
  /* Adds a constant of a static tensor type, copying its bytes. Returns its node; 0xffffffff and
   * `last_error` when they do not fit the type. [one thread] */
  uint32_t (*constant)(tenon_transaction *transaction, uint32_t ty, tenon_bytes bytes);
  /* Adds constant `index` of `function`, sharing its bytes. Returns its node; 0xffffffff and
   * `last_error` when there is none. [one thread] */
  uint32_t (*share_constant)(tenon_transaction *transaction, const tenon_function *function, uint32_t index);
  /* Makes every use of `node` by nodes of the base read `replacement`. When either is not there
   * `finish` fails. [one thread] */
  void (*replace)(tenon_transaction *transaction, uint32_t node, uint32_t replacement);
  /* Sets the root. When it is not there `finish` fails. [one thread] */
  void (*set_root)(tenon_transaction *transaction, uint32_t root);
  /* Sets the type of a node; 0 has it inferred again. When either is not there `finish` fails. [one
   * thread] */
  void (*set_type)(tenon_transaction *transaction, uint32_t node, uint32_t ty);
  /* Publishes and ends the transaction. Returns a function that the caller owns, the base itself when
   * nothing was changed; null and `last_error` when it is not whole. [one thread] */
  const tenon_function *(*finish)(tenon_transaction *transaction);
  /* Writes the names of a module's functions in order, `room` at most, and returns how many functions
   * there are. [any thread] */
  size_t (*module_names)(const tenon_module *module, uint32_t *names, size_t room);
  /* The function called `name`, owned by the caller; null when there is none. [any thread] */
  const tenon_function *(*module_get)(const tenon_module *module, uint32_t name);
  /* The module's attributes, a dictionary term. [any thread] */
  uint32_t (*module_attrs)(const tenon_module *module);
  /* A copy of the module that shares its functions, owned by the caller. [any thread] */
  tenon_module *(*module_clone)(const tenon_module *module);
  /* Gives a module up. [one thread] */
  void (*module_release)(tenon_module *module);
  /* Sets a function, which the module becomes another owner of. False when `name` is no name or the
   * function belongs to another run's terms. [one thread] */
  bool (*module_insert)(tenon_module *module, uint32_t name, const tenon_function *function);
  /* Removes a function. [one thread] */
  void (*module_remove)(tenon_module *module, uint32_t name);
  /* Sets the module's attributes. False when there is no such term. [one thread] */
  bool (*module_set_attrs)(tenon_module *module, uint32_t attrs);
} tenon_host_ir;

/* What the host does for a pass. */
#define TENON_HOST_SERVICES_INTERFACE "tenon.host.services/1"
typedef struct tenon_host_services {
  /* Bytes of this table. An entry that ends behind them is absent. */
  size_t size;
  /* The pass's options, a dictionary term with defaults filled in. [any thread] */
  uint32_t (*options)(const tenon_run *run);
  /* The target, a dictionary term; docs/targets.md lists its keys. [any thread] */
  uint32_t (*target)(const tenon_run *run);
  /* Reports a message: 1 error, 2 warning, 3 note, 4 trace. [any thread] */
  void (*report)(const tenon_run *run, uint32_t level, tenon_str text);
  /* Whether the pass should stop. [any thread] */
  bool (*is_cancelled)(const tenon_run *run);
  /* Says that the pass fails, and why; the text is copied. `failure`: 1 an error, 2 a panic, 3 it was
   * cancelled, 4 to 8 a problem of tenon.host.import/1. `node`: the node of the pass's unit that it is
   * about, 0xffffffff for none. The first call counts, and the pass has failed whatever it returns.
   * [any thread] */
  void (*fail)(const tenon_run *run, uint32_t failure, tenon_str text, uint32_t node);
  /* Why the last call of this thread failed, borrowed until its next call that fails; empty when none
   * has. [any thread] */
  tenon_str (*last_error)(const tenon_run *run);
  /* What is known of an operator: bit 0 known, bit 1 pure, bits 8.. the fusion pattern. Bit 2 says of a
   * pure one that its result may stand for memory of its arguments, of another one that it writes none.
   * [any thread] */
  uint32_t (*op_info)(const tenon_run *run, uint32_t name);
  /* Evaluates a node whose operands are constants, by the reference evaluator, and adds the result to
   * the transaction. Returns its node; 0xffffffff and `last_error` when it cannot. [one thread] */
  uint32_t (*evaluate)(const tenon_run *run, tenon_transaction *transaction, uint32_t node);
  /* The tensor program of an operator call: of an operator's name, attributes, argument types and a
   * result type. It is private, and owned by the caller; null and `last_error` when there is none. [any
   * thread] */
  const tenon_function *(*legalize)(const tenon_run *run, uint32_t op, uint32_t attrs, tenon_ids args, uint32_t result);
  /* Calls `item` with `state` for every index below `count`, each once, in any order and on any
   * threads, this one among them, and returns when all calls have. A call may ask for more of this
   * itself, and everything that is for any thread; it holds no lock while it does. It does not unwind.
   * False and `last_error` when there is nothing to call. [any thread] Since 1.1. */
  bool (*parallel_for)(const tenon_run *run, uint64_t count, tenon_item *item, void *state);
  /* As `fail`, about `node` of a program that the pass made: it is what the message shows. `function`
   * stays the caller's. [any thread] Since 1.1. */
  void (*fail_in)(const tenon_run *run, uint32_t failure, tenon_str text, const tenon_function *function, uint32_t node);
  /* What the code of a function is for, a dictionary term as `target` gives: what the function says
   * itself, or what the module is compiled for. 0 when that is not known. [any thread] Since 1.1. */
  uint32_t (*target_of)(const tenon_run *run, const tenon_function *function);
  /* As `legalize`, where `target` is what the program is for, a dictionary term or 0. [any thread]
   * Since 1.1. */
  const tenon_function *(*legalize_for)(const tenon_run *run, uint32_t op, uint32_t attrs, tenon_ids args, uint32_t result, uint32_t target);
  /* Has schedules of the tensor programs of `module` measured that say in the attribute `task` what
   * they are known by, and what is found appended to a file. `how` and the answer are dictionary terms;
   * docs/tuning.md lists their keys. 0 when the module is that of a candidate, for which nothing is
   * measured; 0xffffffff and `last_error` when that failed, also when the pass should stop. It returns
   * when all is measured. [any thread] Since 1.1. */
  uint32_t (*measure_schedules)(const tenon_run *run, const tenon_module *module, uint32_t how);
} tenon_host_services;

/* The code generators of a plugin. */
#define TENON_CODEGEN_INTERFACE "tenon.byoc.codegen/1"
typedef struct tenon_codegen_table {
  /* Bytes of this table. An entry that ends behind them is absent. */
  size_t size;
  /* Number of code generators. [any thread] */
  uint32_t (*count)(void);
  /* Name of a code generator, as the manifest has it, borrowed for ever; empty when there is none. [any
   * thread] */
  tenon_str (*name)(uint32_t index);
  /* Whether a code generator takes what one of its patterns matched, as a graph function, which stays
   * the caller's. [any thread] */
  bool (*accepts)(uint32_t index, tenon_host host, const tenon_function *function);
  /* Compiles functions `names` of `module`, which stays the caller's, and hands the result to `object`
   * of tenon.host.codegen/1: a relocatable object for the target that defines for each a function of
   * its name. That takes a pointer to each tensor, dense and row-major, parameters first and then
   * results, scratch memory of no bytes and a `tenon_parallel`, and returns 0 when it has done its
   * work. False when that failed, after `fail` was told. [any thread] */
  bool (*generate)(uint32_t index, tenon_host host, const tenon_module *module, tenon_ids names);
} tenon_codegen_table;

/* What the host does for code generators, and for the passes that share a module out among them. */
#define TENON_HOST_CODEGEN_INTERFACE "tenon.host.codegen/1"
typedef struct tenon_host_codegen {
  /* Bytes of this table. An entry that ends behind them is absent. */
  size_t size;
  /* The patterns of what a code generator takes, a list term of strings `name = pattern`; 0 and
   * `last_error` when there is none of this name. [any thread] */
  uint32_t (*patterns)(const tenon_run *run, uint32_t generator);
  /* Whether a code generator takes a graph function that one of its patterns matched: 1 when it does, 0
   * when not; 0xffffffff and `last_error` when it cannot be asked. [any thread] */
  uint32_t (*accepts)(const tenon_run *run, uint32_t generator, const tenon_function *function);
  /* Has a code generator compile functions `names` of `module`. Writes into `programs`, which has room
   * for as many, for each the tensor program that calls its code, private and owned by the caller.
   * False and `last_error` when that failed; then nothing is written. [any thread] */
  bool (*generate)(const tenon_run *run, uint32_t generator, const tenon_module *module, tenon_ids names, const tenon_function **programs);
  /* Takes what a code generator made, a relocatable object, copying its bytes. The last call counts.
   * [any thread] */
  void (*object)(const tenon_run *run, tenon_bytes bytes);
} tenon_host_codegen;

/* The operators of a plugin. Unstable until operators are frozen. */
#define TENON_OP_INTERFACE "tenon.op/1"
typedef struct tenon_op_table {
  /* Bytes of this table. An entry that ends behind them is absent. */
  size_t size;
  /* Number of operators. [any thread] */
  uint32_t (*count)(void);
  /* Name of an operator, as the manifest has it, borrowed for ever; empty when there is none. [any
   * thread] */
  tenon_str (*name)(uint32_t index);
  /* The type of a call of an operator: of its attributes, a dictionary term, and of the types of its
   * arguments, 0 for one without a type. The host has checked how many there are, and the attributes
   * against the manifest. 0 when there is none, after `fail` was told. [any thread] */
  uint32_t (*infer)(uint32_t index, tenon_host host, uint32_t attrs, tenon_ids args);
  /* Computes a call of an operator, whose type was inferred: of its attributes and its arguments,
   * tuples flattened, shapes and dimensions as tensors of i64. `results` tells element type and shape
   * of each tensor of the result; a length of UINT64_MAX is not known before, and nor is an extent of
   * it. Each is handed over by `result`, `share` or `give` of tenon.host.op/1. False when that failed,
   * after `fail` was told. [any thread] */
  bool (*evaluate)(uint32_t index, tenon_host host, uint32_t attrs, tenon_tensors args, tenon_tensors results);
  /* Gives up what was handed over by `give`. [any thread] */
  void (*release)(void *owner);
} tenon_op_table;

/* What the host does for operators. Unstable until operators are frozen. */
#define TENON_HOST_OP_INTERFACE "tenon.host.op/1"
typedef struct tenon_host_op {
  /* Bytes of this table. An entry that ends behind them is absent. */
  size_t size;
  /* The attributes of a call of operator `op`, a symbol, with the defaults of those that are not given,
   * a dictionary term; 0xffffffff and `last_error` when there is no such operator. [any thread] */
  uint32_t (*attributes)(const tenon_run *run, uint32_t op, uint32_t attrs);
  /* Adds an owner of a tensor's bytes, which then outlive the call. [any thread] */
  void (*retain)(const void *owner);
  /* Takes an owner away. [any thread] */
  void (*release)(const void *owner);
  /* Memory for tensor `index` of the result, as many bytes as its type and shape say, all zero; the
   * host's. Null and `last_error` when there is no such tensor. [one thread] */
  uint8_t *(*result)(const tenon_run *run, uint32_t index);
  /* Says that tensor `index` of the result has the bytes of argument `arg`. False and `last_error` when
   * one of them is not there or the lengths differ. [one thread] */
  bool (*share)(const tenon_run *run, uint32_t index, uint32_t arg);
  /* Hands over `len` bytes at `data` as tensor `index` of the result. They stay where they are and as
   * they are until the host tells `release` of the operator's plugin of `owner`, once, also when this
   * fails. False and `last_error` when there is no such tensor or the length is wrong. [one thread] */
  bool (*give)(const tenon_run *run, uint32_t index, const uint8_t *data, uint64_t len, void *owner);
  /* Says what type inference takes for granted of two dimensions, which only a call can refute: that
   * `extent` is `wanted`, or with `may_be_one` that or 1. What is compiled checks it. [one thread]
   * Since 1.1. */
  void (*take_to_fit)(const tenon_run *run, uint32_t extent, uint32_t wanted, bool may_be_one);
} tenon_host_op;

/* The rules of a plugin: what it knows of operators, by facet and key. Unstable until operators are
 * frozen. */
#define TENON_RULE_INTERFACE "tenon.rule/1"
typedef struct tenon_rule_table {
  /* Bytes of this table. An entry that ends behind them is absent. */
  size_t size;
  /* Number of rules. [any thread] */
  uint32_t (*count)(void);
  /* The facet of a rule, as the manifest has it, borrowed for ever; empty when there is none. [any
   * thread] */
  tenon_str (*facet)(uint32_t index);
  /* The key of a rule, as the manifest has it, borrowed for ever; empty when there is none. [any
   * thread] */
  tenon_str (*key)(uint32_t index);
  /* Asks a rule: about nodes of a transaction, which stays the caller's and may be null, and data, a
   * term. What these are says the facet. A rule adds nodes and replaces none. It hands its answer to
   * `answer` of tenon.host.rule/1, and declines when it returns without. False when it failed, after
   * `fail` was told. [one thread] */
  bool (*apply)(uint32_t index, tenon_host host, tenon_transaction *transaction, tenon_ids nodes, uint32_t data);
} tenon_rule_table;

/* What the host does for rules, and for those who ask for them. Unstable until operators are frozen. */
#define TENON_HOST_RULE_INTERFACE "tenon.host.rule/1"
typedef struct tenon_host_rule {
  /* Bytes of this table. An entry that ends behind them is absent. */
  size_t size;
  /* The rules of a facet for a key, both symbols, in a version: a number that `ask` takes in the same
   * run, 0 when there are none; 0xffffffff and `last_error` when they cannot be used. [any thread] */
  uint32_t (*find)(const tenon_run *run, uint32_t facet, uint32_t key, uint64_t version);
  /* Asks rules that `find` found, the best one first, until one answers. 1 when one did, 0 when all
   * declined; 0xffffffff and `last_error` when one failed. [one thread] */
  uint32_t (*ask)(const tenon_run *run, uint32_t rules, tenon_transaction *transaction, tenon_ids nodes, uint32_t data);
  /* The nodes that this thread was answered last, borrowed until it asks again. 0xffffffff stands for
   * none. [any thread] */
  tenon_ids (*answered_nodes)(const tenon_run *run);
  /* The data that this thread was answered last, a term. [any thread] */
  uint32_t (*answered_data)(const tenon_run *run);
  /* Answers what a rule was asked: nodes, 0xffffffff for none, and data, a term. The last call counts.
   * False and `last_error` when there is no such term. [one thread] */
  bool (*answer)(const tenon_run *run, tenon_ids nodes, uint32_t data);
  /* What a node of a transaction stands for: the value of a variable, through variables bound to
   * variables, with the replacements made so far. A variable whose value reads memory that somebody may
   * write stands for itself. 0xffffffff when there is no such node. [one thread] */
  uint32_t (*definition)(tenon_transaction *transaction, uint32_t node);
  /* Whether a node reads memory that somebody may write, and is nested in what reads it: it may be
   * evaluated earlier than that. [one thread] */
  bool (*is_nested_read)(tenon_transaction *transaction, uint32_t node);
  /* Says why the rule that is asked has no answer, in a sentence that names the rule. Whoever asks may
   * look at it; the last call counts. [one thread] Since 1.1. */
  void (*decline)(const tenon_run *run, tenon_str why);
  /* What the rules said that declined what this thread asked last, by its number from 0 on, borrowed
   * until it asks again; empty behind the last one. [any thread] Since 1.1. */
  tenon_str (*declined)(const tenon_run *run, uint32_t index);
} tenon_host_rule;

/* What the host does for a rule of the facet `import.onnx`, which is asked about a node of a model:
 * without a transaction, about the values that the node reads, 0xffffffff for one that is left out. It
 * answers with the values that the node makes. Values are numbers of the function that is built from
 * the model. What fails has one of these problems, and so has a node of which the rule tells `fail`: 4
 * the model's format does not allow it, 5 it is not supported, 6 it reads what must be known when it is
 * imported, 7 an operator does not take it, 8 a tensor of it cannot be read; 1 is a mistake of the
 * rule's. All entries are for the thread that the rule is asked on, until it has answered. Unstable
 * until operators are frozen. */
#define TENON_HOST_IMPORT_INTERFACE "tenon.host.import/1"
typedef struct tenon_host_import {
  /* Bytes of this table. An entry that ends behind them is absent. */
  size_t size;
  /* The version of the operators of its domain that the node is written in. [one thread] */
  uint64_t (*version)(const tenon_run *run);
  /* How many outputs the node has, those without a name counted. [one thread] */
  uint32_t (*output_count)(const tenon_run *run);
  /* Writes an attribute of the node; its kind is 0 when there is none of this name. What it leads to is
   * borrowed until the rule has answered. An attribute that nobody has looked at is not supported.
   * False and `last_error` when the name or the room is none. [one thread] */
  bool (*attribute)(const tenon_run *run, tenon_str name, tenon_attribute *attribute);
  /* The constant that a tensor among the attributes is, a value, which shares the bytes of the model.
   * 0xffffffff and `last_error` when there is none, or it cannot be read. [one thread] */
  uint32_t (*attribute_tensor)(const tenon_run *run, tenon_str name);
  /* The type of elements that the format has this number for; 0xffffffff and `last_error` when there is
   * none. [one thread] */
  uint32_t (*element_type)(const tenon_run *run, uint32_t code);
  /* The type of a value; 0 and `last_error` when there is no such value. [one thread] */
  uint32_t (*value_type)(const tenon_run *run, uint32_t value);
  /* The elements of a value as dimensions, where they are known so: writes the first `room` of them,
   * and returns how many there are. 0xffffffff when they are not known. [one thread] */
  uint32_t (*elements)(const tenon_run *run, uint32_t value, uint32_t *elements, uint32_t room);
  /* Writes the tensor that a value is, when it is a constant, borrowed until the next call of this
   * entry; `retain` of tenon.host.op/1 makes an owner of its bytes. Null writes nothing. False when it
   * is none. [one thread] */
  bool (*tensor)(const tenon_run *run, uint32_t value, tenon_tensor *tensor);
  /* Calls an operator with arguments, values, and attributes, a dictionary term. Returns the result, a
   * value, whose type is inferred; 0xffffffff and `last_error` when the operator does not take them.
   * [one thread] */
  uint32_t (*call)(const tenon_run *run, tenon_str op, tenon_ids args, uint32_t attrs);
  /* A constant of a static tensor type, copying its bytes. 0xffffffff and `last_error` when they do not
   * fit the type. [one thread] */
  uint32_t (*constant)(const tenon_run *run, uint32_t ty, tenon_bytes bytes);
  /* The constant with the bytes of another one, which are not copied, and of another type. 0xffffffff
   * and `last_error` when it is no constant, or they do not fit the type. [one thread] */
  uint32_t (*retyped)(const tenon_run *run, uint32_t value, uint32_t ty);
  /* A tensor of integers or truth values of a static type, whose elements are these dimensions. It gets
   * into the function only where something reads it. 0xffffffff and `last_error` when they do not fit
   * the type. [one thread] */
  uint32_t (*dimensions)(const tenon_run *run, uint32_t ty, tenon_ids elements);
  /* A shape of these dimensions; 0xffffffff and `last_error` when one is no dimension. [one thread] */
  uint32_t (*shape)(const tenon_run *run, tenon_ids dims);
  /* A tuple of these values; 0xffffffff and `last_error` when one is not there. [one thread] */
  uint32_t (*tuple)(const tenon_run *run, tenon_ids fields);
  /* Writes the fields of a tuple, `room` of them. False and `last_error` when it is no tuple of so
   * many. [one thread] */
  bool (*items)(const tenon_run *run, uint32_t tuple, uint32_t *items, uint32_t room);
  /* Takes so many bytes of what the constants that are computed for a model may take together; false
   * when there is not so much left. [one thread] */
  bool (*spend)(const tenon_run *run, uint64_t bytes);
  /* Which problem the last entry of this table that failed told; 1 when none has. [one thread] */
  uint32_t (*problem)(const tenon_run *run);
  /* How many axes the model says that an output of the node has, or 0 for as few as there can be;
   * 0xffffffff where it says nothing. [one thread] Since 1.1. */
  uint32_t (*output_rank)(const tenon_run *run, uint32_t output);
} tenon_host_import;


/* The root of this plugin. TENON_PLUGIN defines it. */
extern TENON_EXPORT const tenon_root tenon_plugin_root;

/* -- Layouts as data: the host compares them with its own. -- */

#define TENON_TEXT(literal) { literal, sizeof(literal) - 1 }
#define TENON_FIELD(type, field, text)                                                                      \
  { TENON_TEXT(#field), TENON_TEXT(text), offsetof(type, field), sizeof(((type *)0)->field) }
#define TENON_INTERFACE(id, type, table)                                                                    \
  { TENON_TEXT(id), { type##_layout, sizeof(type##_layout) / sizeof(tenon_field) }, table }

/* A plugin in C that has instruments defines this as the address of its table, before it includes this file. */
#ifndef TENON_INSTRUMENT_TABLE
#define TENON_INSTRUMENT_TABLE NULL
#endif

/* One that has operators defines this as the address of its table, before it includes this file. */
#ifndef TENON_OP_TABLE
#define TENON_OP_TABLE NULL
#endif

/* One that has code generators defines this as the address of its table, before it includes this file. */
#ifndef TENON_CODEGEN_TABLE
#define TENON_CODEGEN_TABLE NULL
#endif

/* One that has rules defines this as the address of its table, before it includes this file. */
#ifndef TENON_RULE_TABLE
#define TENON_RULE_TABLE NULL
#endif

static const tenon_field tenon_node_layout[] = {
    TENON_FIELD(tenon_node, kind, "uint16_t"),
    TENON_FIELD(tenon_node, flags, "uint16_t"),
    TENON_FIELD(tenon_node, ty, "uint32_t"),
    TENON_FIELD(tenon_node, start, "uint32_t"),
    TENON_FIELD(tenon_node, len, "uint32_t"),
    TENON_FIELD(tenon_node, data, "uint32_t"),
    TENON_FIELD(tenon_node, aux, "uint32_t"),
    TENON_FIELD(tenon_node, attrs, "uint32_t"),
    TENON_FIELD(tenon_node, span, "uint32_t"),
};

static const tenon_field tenon_term_layout[] = {
    TENON_FIELD(tenon_term, kind, "uint16_t"),
    TENON_FIELD(tenon_term, flags, "uint16_t"),
    TENON_FIELD(tenon_term, len, "uint32_t"),
    TENON_FIELD(tenon_term, bits, "uint64_t"),
    TENON_FIELD(tenon_term, children, "const void *"),
};

static const tenon_field tenon_constant_layout[] = {
    TENON_FIELD(tenon_constant, ty, "uint32_t"),
    TENON_FIELD(tenon_constant, name, "uint32_t"),
    TENON_FIELD(tenon_constant, data, "const uint8_t *"),
    TENON_FIELD(tenon_constant, len, "uint64_t"),
};

static const tenon_field tenon_body_layout[] = {
    TENON_FIELD(tenon_body, size, "uint32_t"),
    TENON_FIELD(tenon_body, root, "uint32_t"),
    TENON_FIELD(tenon_body, nodes, "const void *"),
    TENON_FIELD(tenon_body, node_stride, "uint32_t"),
    TENON_FIELD(tenon_body, node_count, "uint32_t"),
    TENON_FIELD(tenon_body, operands, "const uint32_t *"),
    TENON_FIELD(tenon_body, constants, "const void *"),
    TENON_FIELD(tenon_body, operand_count, "uint32_t"),
    TENON_FIELD(tenon_body, constant_stride, "uint32_t"),
    TENON_FIELD(tenon_body, constant_count, "uint32_t"),
    TENON_FIELD(tenon_body, base_len, "uint32_t"),
    TENON_FIELD(tenon_body, terms, "const tenon_term_table *"),
    TENON_FIELD(tenon_body, replaced, "const uint32_t *"),
    TENON_FIELD(tenon_body, replaced_len, "uint32_t"),
    TENON_FIELD(tenon_body, reserved, "uint32_t"),
};

static const tenon_field tenon_pass_table_layout[] = {
    TENON_FIELD(tenon_pass_table, size, "size_t"),
    TENON_FIELD(tenon_pass_table, count, "uint32_t()"),
    TENON_FIELD(tenon_pass_table, name, "tenon_str(uint32_t)"),
    TENON_FIELD(tenon_pass_table, run, "void *(uint32_t, tenon_host, const void *, const tenon_module *)"),
};

static const tenon_field tenon_instrument_table_layout[] = {
    TENON_FIELD(tenon_instrument_table, size, "size_t"),
    TENON_FIELD(tenon_instrument_table, count, "uint32_t()"),
    TENON_FIELD(tenon_instrument_table, name, "tenon_str(uint32_t)"),
    TENON_FIELD(tenon_instrument_table, create, "void *(uint32_t)"),
    TENON_FIELD(tenon_instrument_table, destroy, "void(void *)"),
    TENON_FIELD(tenon_instrument_table, tell, "bool(void *, tenon_host, uint32_t, tenon_str, const tenon_module *, const tenon_module *, uint64_t)"),
};

static const tenon_field tenon_host_ir_layout[] = {
    TENON_FIELD(tenon_host_ir, size, "size_t"),
    TENON_FIELD(tenon_host_ir, run_retain, "void(const tenon_run *)"),
    TENON_FIELD(tenon_host_ir, run_release, "void(const tenon_run *)"),
    TENON_FIELD(tenon_host_ir, terms, "const tenon_term_table *(const tenon_run *)"),
    TENON_FIELD(tenon_host_ir, intern, "uint32_t(const tenon_run *, uint16_t, uint16_t, uint64_t, tenon_ids)"),
    TENON_FIELD(tenon_host_ir, symbol, "uint32_t(const tenon_run *, tenon_str)"),
    TENON_FIELD(tenon_host_ir, function_retain, "void(const tenon_function *)"),
    TENON_FIELD(tenon_host_ir, function_release, "void(const tenon_function *)"),
    TENON_FIELD(tenon_host_ir, function_body, "void(const tenon_function *, tenon_body *, size_t)"),
    TENON_FIELD(tenon_host_ir, edit, "tenon_transaction *(const tenon_run *, const tenon_function *)"),
    TENON_FIELD(tenon_host_ir, abandon, "void(tenon_transaction *)"),
    TENON_FIELD(tenon_host_ir, transaction_body, "const tenon_body *(tenon_transaction *)"),
    TENON_FIELD(tenon_host_ir, push, "uint32_t(tenon_transaction *, const tenon_node *, size_t, tenon_ids)"),
    TENON_FIELD(tenon_host_ir, constant, "uint32_t(tenon_transaction *, uint32_t, tenon_bytes)"),
    TENON_FIELD(tenon_host_ir, share_constant, "uint32_t(tenon_transaction *, const tenon_function *, uint32_t)"),
    TENON_FIELD(tenon_host_ir, replace, "void(tenon_transaction *, uint32_t, uint32_t)"),
    TENON_FIELD(tenon_host_ir, set_root, "void(tenon_transaction *, uint32_t)"),
    TENON_FIELD(tenon_host_ir, set_type, "void(tenon_transaction *, uint32_t, uint32_t)"),
    TENON_FIELD(tenon_host_ir, finish, "const tenon_function *(tenon_transaction *)"),
    TENON_FIELD(tenon_host_ir, module_names, "size_t(const tenon_module *, uint32_t *, size_t)"),
    TENON_FIELD(tenon_host_ir, module_get, "const tenon_function *(const tenon_module *, uint32_t)"),
    TENON_FIELD(tenon_host_ir, module_attrs, "uint32_t(const tenon_module *)"),
    TENON_FIELD(tenon_host_ir, module_clone, "tenon_module *(const tenon_module *)"),
    TENON_FIELD(tenon_host_ir, module_release, "void(tenon_module *)"),
    TENON_FIELD(tenon_host_ir, module_insert, "bool(tenon_module *, uint32_t, const tenon_function *)"),
    TENON_FIELD(tenon_host_ir, module_remove, "void(tenon_module *, uint32_t)"),
    TENON_FIELD(tenon_host_ir, module_set_attrs, "bool(tenon_module *, uint32_t)"),
};

static const tenon_field tenon_host_services_layout[] = {
    TENON_FIELD(tenon_host_services, size, "size_t"),
    TENON_FIELD(tenon_host_services, options, "uint32_t(const tenon_run *)"),
    TENON_FIELD(tenon_host_services, target, "uint32_t(const tenon_run *)"),
    TENON_FIELD(tenon_host_services, report, "void(const tenon_run *, uint32_t, tenon_str)"),
    TENON_FIELD(tenon_host_services, is_cancelled, "bool(const tenon_run *)"),
    TENON_FIELD(tenon_host_services, fail, "void(const tenon_run *, uint32_t, tenon_str, uint32_t)"),
    TENON_FIELD(tenon_host_services, last_error, "tenon_str(const tenon_run *)"),
    TENON_FIELD(tenon_host_services, op_info, "uint32_t(const tenon_run *, uint32_t)"),
    TENON_FIELD(tenon_host_services, evaluate, "uint32_t(const tenon_run *, tenon_transaction *, uint32_t)"),
    TENON_FIELD(tenon_host_services, legalize, "const tenon_function *(const tenon_run *, uint32_t, uint32_t, tenon_ids, uint32_t)"),
    TENON_FIELD(tenon_host_services, parallel_for, "bool(const tenon_run *, uint64_t, tenon_item *, void *)"),
    TENON_FIELD(tenon_host_services, fail_in, "void(const tenon_run *, uint32_t, tenon_str, const tenon_function *, uint32_t)"),
    TENON_FIELD(tenon_host_services, target_of, "uint32_t(const tenon_run *, const tenon_function *)"),
    TENON_FIELD(tenon_host_services, legalize_for, "const tenon_function *(const tenon_run *, uint32_t, uint32_t, tenon_ids, uint32_t, uint32_t)"),
    TENON_FIELD(tenon_host_services, measure_schedules, "uint32_t(const tenon_run *, const tenon_module *, uint32_t)"),
};

static const tenon_field tenon_codegen_table_layout[] = {
    TENON_FIELD(tenon_codegen_table, size, "size_t"),
    TENON_FIELD(tenon_codegen_table, count, "uint32_t()"),
    TENON_FIELD(tenon_codegen_table, name, "tenon_str(uint32_t)"),
    TENON_FIELD(tenon_codegen_table, accepts, "bool(uint32_t, tenon_host, const tenon_function *)"),
    TENON_FIELD(tenon_codegen_table, generate, "bool(uint32_t, tenon_host, const tenon_module *, tenon_ids)"),
};

static const tenon_field tenon_host_codegen_layout[] = {
    TENON_FIELD(tenon_host_codegen, size, "size_t"),
    TENON_FIELD(tenon_host_codegen, patterns, "uint32_t(const tenon_run *, uint32_t)"),
    TENON_FIELD(tenon_host_codegen, accepts, "uint32_t(const tenon_run *, uint32_t, const tenon_function *)"),
    TENON_FIELD(tenon_host_codegen, generate, "bool(const tenon_run *, uint32_t, const tenon_module *, tenon_ids, const tenon_function **)"),
    TENON_FIELD(tenon_host_codegen, object, "void(const tenon_run *, tenon_bytes)"),
};

static const tenon_field tenon_op_table_layout[] = {
    TENON_FIELD(tenon_op_table, size, "size_t"),
    TENON_FIELD(tenon_op_table, count, "uint32_t()"),
    TENON_FIELD(tenon_op_table, name, "tenon_str(uint32_t)"),
    TENON_FIELD(tenon_op_table, infer, "uint32_t(uint32_t, tenon_host, uint32_t, tenon_ids)"),
    TENON_FIELD(tenon_op_table, evaluate, "bool(uint32_t, tenon_host, uint32_t, tenon_tensors, tenon_tensors)"),
    TENON_FIELD(tenon_op_table, release, "void(void *)"),
};

static const tenon_field tenon_host_op_layout[] = {
    TENON_FIELD(tenon_host_op, size, "size_t"),
    TENON_FIELD(tenon_host_op, attributes, "uint32_t(const tenon_run *, uint32_t, uint32_t)"),
    TENON_FIELD(tenon_host_op, retain, "void(const void *)"),
    TENON_FIELD(tenon_host_op, release, "void(const void *)"),
    TENON_FIELD(tenon_host_op, result, "uint8_t *(const tenon_run *, uint32_t)"),
    TENON_FIELD(tenon_host_op, share, "bool(const tenon_run *, uint32_t, uint32_t)"),
    TENON_FIELD(tenon_host_op, give, "bool(const tenon_run *, uint32_t, const uint8_t *, uint64_t, void *)"),
    TENON_FIELD(tenon_host_op, take_to_fit, "void(const tenon_run *, uint32_t, uint32_t, bool)"),
};

static const tenon_field tenon_rule_table_layout[] = {
    TENON_FIELD(tenon_rule_table, size, "size_t"),
    TENON_FIELD(tenon_rule_table, count, "uint32_t()"),
    TENON_FIELD(tenon_rule_table, facet, "tenon_str(uint32_t)"),
    TENON_FIELD(tenon_rule_table, key, "tenon_str(uint32_t)"),
    TENON_FIELD(tenon_rule_table, apply, "bool(uint32_t, tenon_host, tenon_transaction *, tenon_ids, uint32_t)"),
};

static const tenon_field tenon_host_rule_layout[] = {
    TENON_FIELD(tenon_host_rule, size, "size_t"),
    TENON_FIELD(tenon_host_rule, find, "uint32_t(const tenon_run *, uint32_t, uint32_t, uint64_t)"),
    TENON_FIELD(tenon_host_rule, ask, "uint32_t(const tenon_run *, uint32_t, tenon_transaction *, tenon_ids, uint32_t)"),
    TENON_FIELD(tenon_host_rule, answered_nodes, "tenon_ids(const tenon_run *)"),
    TENON_FIELD(tenon_host_rule, answered_data, "uint32_t(const tenon_run *)"),
    TENON_FIELD(tenon_host_rule, answer, "bool(const tenon_run *, tenon_ids, uint32_t)"),
    TENON_FIELD(tenon_host_rule, definition, "uint32_t(tenon_transaction *, uint32_t)"),
    TENON_FIELD(tenon_host_rule, is_nested_read, "bool(tenon_transaction *, uint32_t)"),
    TENON_FIELD(tenon_host_rule, decline, "void(const tenon_run *, tenon_str)"),
    TENON_FIELD(tenon_host_rule, declined, "tenon_str(const tenon_run *, uint32_t)"),
};

static const tenon_field tenon_host_import_layout[] = {
    TENON_FIELD(tenon_host_import, size, "size_t"),
    TENON_FIELD(tenon_host_import, version, "uint64_t(const tenon_run *)"),
    TENON_FIELD(tenon_host_import, output_count, "uint32_t(const tenon_run *)"),
    TENON_FIELD(tenon_host_import, attribute, "bool(const tenon_run *, tenon_str, tenon_attribute *)"),
    TENON_FIELD(tenon_host_import, attribute_tensor, "uint32_t(const tenon_run *, tenon_str)"),
    TENON_FIELD(tenon_host_import, element_type, "uint32_t(const tenon_run *, uint32_t)"),
    TENON_FIELD(tenon_host_import, value_type, "uint32_t(const tenon_run *, uint32_t)"),
    TENON_FIELD(tenon_host_import, elements, "uint32_t(const tenon_run *, uint32_t, uint32_t *, uint32_t)"),
    TENON_FIELD(tenon_host_import, tensor, "bool(const tenon_run *, uint32_t, tenon_tensor *)"),
    TENON_FIELD(tenon_host_import, call, "uint32_t(const tenon_run *, tenon_str, tenon_ids, uint32_t)"),
    TENON_FIELD(tenon_host_import, constant, "uint32_t(const tenon_run *, uint32_t, tenon_bytes)"),
    TENON_FIELD(tenon_host_import, retyped, "uint32_t(const tenon_run *, uint32_t, uint32_t)"),
    TENON_FIELD(tenon_host_import, dimensions, "uint32_t(const tenon_run *, uint32_t, tenon_ids)"),
    TENON_FIELD(tenon_host_import, shape, "uint32_t(const tenon_run *, tenon_ids)"),
    TENON_FIELD(tenon_host_import, tuple, "uint32_t(const tenon_run *, tenon_ids)"),
    TENON_FIELD(tenon_host_import, items, "bool(const tenon_run *, uint32_t, uint32_t *, uint32_t)"),
    TENON_FIELD(tenon_host_import, spend, "bool(const tenon_run *, uint64_t)"),
    TENON_FIELD(tenon_host_import, problem, "uint32_t(const tenon_run *)"),
    TENON_FIELD(tenon_host_import, output_rank, "uint32_t(const tenon_run *, uint32_t)"),
};


/* What stands where, for ever. */
TENON_ASSERT(sizeof(void *) == 8 && sizeof(tenon_str) == 16 && sizeof(tenon_term_table) == 264);
TENON_ASSERT(sizeof(tenon_field) == 40);
TENON_ASSERT(offsetof(tenon_field, name) == 0);
TENON_ASSERT(offsetof(tenon_field, ty) == 16);
TENON_ASSERT(offsetof(tenon_field, offset) == 32);
TENON_ASSERT(offsetof(tenon_field, size) == 36);

TENON_ASSERT(sizeof(tenon_interface) == 40);
TENON_ASSERT(offsetof(tenon_interface, id) == 0);
TENON_ASSERT(offsetof(tenon_interface, layout) == 16);
TENON_ASSERT(offsetof(tenon_interface, table) == 32);

TENON_ASSERT(sizeof(tenon_root) == 40);
TENON_ASSERT(offsetof(tenon_root, root_abi) == 0);
TENON_ASSERT(offsetof(tenon_root, reserved) == 4);
TENON_ASSERT(offsetof(tenon_root, manifest) == 8);
TENON_ASSERT(offsetof(tenon_root, interfaces) == 24);

TENON_ASSERT(sizeof(tenon_host) == 16);
TENON_ASSERT(offsetof(tenon_host, run) == 0);
TENON_ASSERT(offsetof(tenon_host, query) == 8);

TENON_ASSERT(sizeof(tenon_node) == 32);
TENON_ASSERT(offsetof(tenon_node, kind) == 0);
TENON_ASSERT(offsetof(tenon_node, flags) == 2);
TENON_ASSERT(offsetof(tenon_node, ty) == 4);
TENON_ASSERT(offsetof(tenon_node, start) == 8);
TENON_ASSERT(offsetof(tenon_node, len) == 12);
TENON_ASSERT(offsetof(tenon_node, data) == 16);
TENON_ASSERT(offsetof(tenon_node, aux) == 20);
TENON_ASSERT(offsetof(tenon_node, attrs) == 24);
TENON_ASSERT(offsetof(tenon_node, span) == 28);

TENON_ASSERT(sizeof(tenon_term) == 24);
TENON_ASSERT(offsetof(tenon_term, kind) == 0);
TENON_ASSERT(offsetof(tenon_term, flags) == 2);
TENON_ASSERT(offsetof(tenon_term, len) == 4);
TENON_ASSERT(offsetof(tenon_term, bits) == 8);
TENON_ASSERT(offsetof(tenon_term, children) == 16);

TENON_ASSERT(sizeof(tenon_constant) == 24);
TENON_ASSERT(offsetof(tenon_constant, ty) == 0);
TENON_ASSERT(offsetof(tenon_constant, name) == 4);
TENON_ASSERT(offsetof(tenon_constant, data) == 8);
TENON_ASSERT(offsetof(tenon_constant, len) == 16);

TENON_ASSERT(sizeof(tenon_body) == 80);
TENON_ASSERT(offsetof(tenon_body, size) == 0);
TENON_ASSERT(offsetof(tenon_body, root) == 4);
TENON_ASSERT(offsetof(tenon_body, nodes) == 8);
TENON_ASSERT(offsetof(tenon_body, node_stride) == 16);
TENON_ASSERT(offsetof(tenon_body, node_count) == 20);
TENON_ASSERT(offsetof(tenon_body, operands) == 24);
TENON_ASSERT(offsetof(tenon_body, constants) == 32);
TENON_ASSERT(offsetof(tenon_body, operand_count) == 40);
TENON_ASSERT(offsetof(tenon_body, constant_stride) == 44);
TENON_ASSERT(offsetof(tenon_body, constant_count) == 48);
TENON_ASSERT(offsetof(tenon_body, base_len) == 52);
TENON_ASSERT(offsetof(tenon_body, terms) == 56);
TENON_ASSERT(offsetof(tenon_body, replaced) == 64);
TENON_ASSERT(offsetof(tenon_body, replaced_len) == 72);
TENON_ASSERT(offsetof(tenon_body, reserved) == 76);

TENON_ASSERT(sizeof(tenon_tensor) == 40);
TENON_ASSERT(offsetof(tenon_tensor, dtype) == 0);
TENON_ASSERT(offsetof(tenon_tensor, rank) == 4);
TENON_ASSERT(offsetof(tenon_tensor, shape) == 8);
TENON_ASSERT(offsetof(tenon_tensor, data) == 16);
TENON_ASSERT(offsetof(tenon_tensor, len) == 24);
TENON_ASSERT(offsetof(tenon_tensor, owner) == 32);

TENON_ASSERT(sizeof(tenon_attribute) == 32);
TENON_ASSERT(offsetof(tenon_attribute, kind) == 0);
TENON_ASSERT(offsetof(tenon_attribute, reserved) == 4);
TENON_ASSERT(offsetof(tenon_attribute, bits) == 8);
TENON_ASSERT(offsetof(tenon_attribute, data) == 16);
TENON_ASSERT(offsetof(tenon_attribute, len) == 24);

TENON_ASSERT(sizeof(tenon_pass_table) == 32);
TENON_ASSERT(offsetof(tenon_pass_table, size) == 0);
TENON_ASSERT(offsetof(tenon_pass_table, count) == 8);
TENON_ASSERT(offsetof(tenon_pass_table, name) == 16);
TENON_ASSERT(offsetof(tenon_pass_table, run) == 24);

TENON_ASSERT(sizeof(tenon_instrument_table) == 48);
TENON_ASSERT(offsetof(tenon_instrument_table, size) == 0);
TENON_ASSERT(offsetof(tenon_instrument_table, count) == 8);
TENON_ASSERT(offsetof(tenon_instrument_table, name) == 16);
TENON_ASSERT(offsetof(tenon_instrument_table, create) == 24);
TENON_ASSERT(offsetof(tenon_instrument_table, destroy) == 32);
TENON_ASSERT(offsetof(tenon_instrument_table, tell) == 40);

TENON_ASSERT(sizeof(tenon_host_ir) == 216);
TENON_ASSERT(offsetof(tenon_host_ir, size) == 0);
TENON_ASSERT(offsetof(tenon_host_ir, run_retain) == 8);
TENON_ASSERT(offsetof(tenon_host_ir, run_release) == 16);
TENON_ASSERT(offsetof(tenon_host_ir, terms) == 24);
TENON_ASSERT(offsetof(tenon_host_ir, intern) == 32);
TENON_ASSERT(offsetof(tenon_host_ir, symbol) == 40);
TENON_ASSERT(offsetof(tenon_host_ir, function_retain) == 48);
TENON_ASSERT(offsetof(tenon_host_ir, function_release) == 56);
TENON_ASSERT(offsetof(tenon_host_ir, function_body) == 64);
TENON_ASSERT(offsetof(tenon_host_ir, edit) == 72);
TENON_ASSERT(offsetof(tenon_host_ir, abandon) == 80);
TENON_ASSERT(offsetof(tenon_host_ir, transaction_body) == 88);
TENON_ASSERT(offsetof(tenon_host_ir, push) == 96);
TENON_ASSERT(offsetof(tenon_host_ir, constant) == 104);
TENON_ASSERT(offsetof(tenon_host_ir, share_constant) == 112);
TENON_ASSERT(offsetof(tenon_host_ir, replace) == 120);
TENON_ASSERT(offsetof(tenon_host_ir, set_root) == 128);
TENON_ASSERT(offsetof(tenon_host_ir, set_type) == 136);
TENON_ASSERT(offsetof(tenon_host_ir, finish) == 144);
TENON_ASSERT(offsetof(tenon_host_ir, module_names) == 152);
TENON_ASSERT(offsetof(tenon_host_ir, module_get) == 160);
TENON_ASSERT(offsetof(tenon_host_ir, module_attrs) == 168);
TENON_ASSERT(offsetof(tenon_host_ir, module_clone) == 176);
TENON_ASSERT(offsetof(tenon_host_ir, module_release) == 184);
TENON_ASSERT(offsetof(tenon_host_ir, module_insert) == 192);
TENON_ASSERT(offsetof(tenon_host_ir, module_remove) == 200);
TENON_ASSERT(offsetof(tenon_host_ir, module_set_attrs) == 208);

TENON_ASSERT(sizeof(tenon_host_services) == 120);
TENON_ASSERT(offsetof(tenon_host_services, size) == 0);
TENON_ASSERT(offsetof(tenon_host_services, options) == 8);
TENON_ASSERT(offsetof(tenon_host_services, target) == 16);
TENON_ASSERT(offsetof(tenon_host_services, report) == 24);
TENON_ASSERT(offsetof(tenon_host_services, is_cancelled) == 32);
TENON_ASSERT(offsetof(tenon_host_services, fail) == 40);
TENON_ASSERT(offsetof(tenon_host_services, last_error) == 48);
TENON_ASSERT(offsetof(tenon_host_services, op_info) == 56);
TENON_ASSERT(offsetof(tenon_host_services, evaluate) == 64);
TENON_ASSERT(offsetof(tenon_host_services, legalize) == 72);
TENON_ASSERT(offsetof(tenon_host_services, parallel_for) == 80);
TENON_ASSERT(offsetof(tenon_host_services, fail_in) == 88);
TENON_ASSERT(offsetof(tenon_host_services, target_of) == 96);
TENON_ASSERT(offsetof(tenon_host_services, legalize_for) == 104);
TENON_ASSERT(offsetof(tenon_host_services, measure_schedules) == 112);

TENON_ASSERT(sizeof(tenon_codegen_table) == 40);
TENON_ASSERT(offsetof(tenon_codegen_table, size) == 0);
TENON_ASSERT(offsetof(tenon_codegen_table, count) == 8);
TENON_ASSERT(offsetof(tenon_codegen_table, name) == 16);
TENON_ASSERT(offsetof(tenon_codegen_table, accepts) == 24);
TENON_ASSERT(offsetof(tenon_codegen_table, generate) == 32);

TENON_ASSERT(sizeof(tenon_host_codegen) == 40);
TENON_ASSERT(offsetof(tenon_host_codegen, size) == 0);
TENON_ASSERT(offsetof(tenon_host_codegen, patterns) == 8);
TENON_ASSERT(offsetof(tenon_host_codegen, accepts) == 16);
TENON_ASSERT(offsetof(tenon_host_codegen, generate) == 24);
TENON_ASSERT(offsetof(tenon_host_codegen, object) == 32);

TENON_ASSERT(sizeof(tenon_op_table) == 48);
TENON_ASSERT(offsetof(tenon_op_table, size) == 0);
TENON_ASSERT(offsetof(tenon_op_table, count) == 8);
TENON_ASSERT(offsetof(tenon_op_table, name) == 16);
TENON_ASSERT(offsetof(tenon_op_table, infer) == 24);
TENON_ASSERT(offsetof(tenon_op_table, evaluate) == 32);
TENON_ASSERT(offsetof(tenon_op_table, release) == 40);

TENON_ASSERT(sizeof(tenon_host_op) == 64);
TENON_ASSERT(offsetof(tenon_host_op, size) == 0);
TENON_ASSERT(offsetof(tenon_host_op, attributes) == 8);
TENON_ASSERT(offsetof(tenon_host_op, retain) == 16);
TENON_ASSERT(offsetof(tenon_host_op, release) == 24);
TENON_ASSERT(offsetof(tenon_host_op, result) == 32);
TENON_ASSERT(offsetof(tenon_host_op, share) == 40);
TENON_ASSERT(offsetof(tenon_host_op, give) == 48);
TENON_ASSERT(offsetof(tenon_host_op, take_to_fit) == 56);

TENON_ASSERT(sizeof(tenon_rule_table) == 40);
TENON_ASSERT(offsetof(tenon_rule_table, size) == 0);
TENON_ASSERT(offsetof(tenon_rule_table, count) == 8);
TENON_ASSERT(offsetof(tenon_rule_table, facet) == 16);
TENON_ASSERT(offsetof(tenon_rule_table, key) == 24);
TENON_ASSERT(offsetof(tenon_rule_table, apply) == 32);

TENON_ASSERT(sizeof(tenon_host_rule) == 80);
TENON_ASSERT(offsetof(tenon_host_rule, size) == 0);
TENON_ASSERT(offsetof(tenon_host_rule, find) == 8);
TENON_ASSERT(offsetof(tenon_host_rule, ask) == 16);
TENON_ASSERT(offsetof(tenon_host_rule, answered_nodes) == 24);
TENON_ASSERT(offsetof(tenon_host_rule, answered_data) == 32);
TENON_ASSERT(offsetof(tenon_host_rule, answer) == 40);
TENON_ASSERT(offsetof(tenon_host_rule, definition) == 48);
TENON_ASSERT(offsetof(tenon_host_rule, is_nested_read) == 56);
TENON_ASSERT(offsetof(tenon_host_rule, decline) == 64);
TENON_ASSERT(offsetof(tenon_host_rule, declined) == 72);

TENON_ASSERT(sizeof(tenon_host_import) == 152);
TENON_ASSERT(offsetof(tenon_host_import, size) == 0);
TENON_ASSERT(offsetof(tenon_host_import, version) == 8);
TENON_ASSERT(offsetof(tenon_host_import, output_count) == 16);
TENON_ASSERT(offsetof(tenon_host_import, attribute) == 24);
TENON_ASSERT(offsetof(tenon_host_import, attribute_tensor) == 32);
TENON_ASSERT(offsetof(tenon_host_import, element_type) == 40);
TENON_ASSERT(offsetof(tenon_host_import, value_type) == 48);
TENON_ASSERT(offsetof(tenon_host_import, elements) == 56);
TENON_ASSERT(offsetof(tenon_host_import, tensor) == 64);
TENON_ASSERT(offsetof(tenon_host_import, call) == 72);
TENON_ASSERT(offsetof(tenon_host_import, constant) == 80);
TENON_ASSERT(offsetof(tenon_host_import, retyped) == 88);
TENON_ASSERT(offsetof(tenon_host_import, dimensions) == 96);
TENON_ASSERT(offsetof(tenon_host_import, shape) == 104);
TENON_ASSERT(offsetof(tenon_host_import, tuple) == 112);
TENON_ASSERT(offsetof(tenon_host_import, items) == 120);
TENON_ASSERT(offsetof(tenon_host_import, spend) == 128);
TENON_ASSERT(offsetof(tenon_host_import, problem) == 136);
TENON_ASSERT(offsetof(tenon_host_import, output_rank) == 144);


/* -- A plugin: its manifest, its passes, its root. -- */

/* A record of the library. `id`, `version` (three numbers) and `summary` are string literals. */
#define TENON_PLUGIN_RECORD(id, version, summary)                                                           \
  "{\"plugin\":\"" id "\",\"format\":1,\"version\":\"" version "\",\"summary\":\"" summary "\"}\n"
/* A record of a pass: `kind` is "module", "function" or "prim"; `more` is "" or TENON_KEYs in a row. */
#define TENON_PASS_RECORD(name, kind, doc, more)                                                            \
  "{\"pass\":\"" name "\",\"kind\":\"" kind "\",\"doc\":\"" doc "\"" more "}\n"
/* A record of an operator of `args` arguments: `effect` and `pattern` are spelled as docs/manifest.md says; `more` as above. */
#define TENON_OP_RECORD(name, args, effect, pattern, doc, more)                                             \
  "{\"op\":\"" name "\",\"min_args\":" args ",\"max_args\":" args ",\"effect\":\"" effect                        \
  "\",\"pattern\":\"" pattern "\",\"doc\":\"" doc "\"" more "}\n"
/* A record of a rule about `key`, mostly an operator: `more` as above. The table has the rules in the order of the records. */
#define TENON_RULE_RECORD(facet, key, doc, more)                                                            \
  "{\"rule\":\"" facet "\",\"key\":\"" key "\",\"doc\":\"" doc "\"" more "}\n"
/* A record of a code generator: `patterns` is a list of texts as JSON, which docs/byoc.md tells of; `more` as above. */
#define TENON_CODEGEN_RECORD(name, patterns, doc, more)                                                     \
  "{\"codegen\":\"" name "\",\"patterns\":" patterns ",\"doc\":\"" doc "\"" more "}\n"
/* A key of a pass's record with JSON as its value: opt_level, requires, after, options, … */
#define TENON_KEY(key, json) ",\"" key "\":" json
#define TENON_TEXT_KEY(key, text) TENON_KEY(key, "\"" text "\"")

#ifdef __APPLE__
#define TENON_NOTE_SECTION "__DATA_CONST,__tenon"
#else
#define TENON_NOTE_SECTION ".note.tenon"
#endif

/* Defines the plugin, once: `manifest` is a string literal made of records, `passes` a constant
 * tenon_pass_table. The manifest lies in the file as a note, which is read without running anything. */
#define TENON_PLUGIN(manifest, passes)                                                                      \
  static const struct {                                                                                     \
    uint32_t name_size, text_size, type;                                                                    \
    char name[8];                                                                                           \
    char text[(sizeof(manifest) + 3) / 4 * 4];                                                              \
  } tenon_plugin_note __attribute__((section(TENON_NOTE_SECTION), used, aligned(4))) = {                    \
      6, (sizeof(manifest) + 3) / 4 * 4, 0x54435031u, "TENON", manifest};                                   \
  static const tenon_interface tenon_plugin_interfaces[] = {                               \
      TENON_INTERFACE("tenon_node", tenon_node, NULL),                                                      \
      TENON_INTERFACE("tenon_term", tenon_term, NULL),                                                      \
      TENON_INTERFACE("tenon_constant", tenon_constant, NULL),                                              \
      TENON_INTERFACE("tenon_body", tenon_body, NULL),                                                      \
      TENON_INTERFACE("tenon.pass/1", tenon_pass_table, &(passes)),                                         \
      TENON_INTERFACE("tenon.instrument/1", tenon_instrument_table, TENON_INSTRUMENT_TABLE),                \
      TENON_INTERFACE("tenon.host.ir/1", tenon_host_ir, NULL),                                              \
      TENON_INTERFACE("tenon.host.services/1", tenon_host_services, NULL),                                  \
      TENON_INTERFACE("tenon.byoc.codegen/1", tenon_codegen_table, TENON_CODEGEN_TABLE),                    \
      TENON_INTERFACE("tenon.host.codegen/1", tenon_host_codegen, NULL),                                    \
      TENON_INTERFACE("tenon.op/1", tenon_op_table, TENON_OP_TABLE),                                        \
      TENON_INTERFACE("tenon.host.op/1", tenon_host_op, NULL),                                              \
      TENON_INTERFACE("tenon.rule/1", tenon_rule_table, TENON_RULE_TABLE),                                  \
      TENON_INTERFACE("tenon.host.rule/1", tenon_host_rule, NULL),                                          \
      TENON_INTERFACE("tenon.host.import/1", tenon_host_import, NULL),                                      \
  };                                \
  const tenon_root tenon_plugin_root = {                                                                    \
      TENON_ROOT_ABI,                                                                                       \
      0,                                                                                                    \
      TENON_TEXT(manifest),                                                                                 \
      {tenon_plugin_interfaces, sizeof(tenon_plugin_interfaces) / sizeof(tenon_interface)}}

/* -- Reading. All of it is [any thread], and copies what it returns. -- */

/* Whether a table of the host's reaches as far as an entry. */
#define TENON_HAS(table, entry)                                                                             \
  ((size_t)((const char *)(&(table)->entry + 1) - (const char *)(table)) <= (table)->size)

/* A text that is terminated, as a borrowed one. */
static inline tenon_str tenon_text(const char *text) {
  tenon_str out = {text, strlen(text)};
  return out;
}

static inline bool tenon_str_is(tenon_str a, const char *b) {
  return a.len == strlen(b) && (a.len == 0 || memcmp(a.data, b, a.len) == 0);
}

/* A table of the host's; NULL when it does not offer it. */
static inline const void *tenon_table(tenon_host host, const char *id) {
  const tenon_interface *found = host.query(tenon_text(id));
  return found ? found->table : NULL;
}

/* What a record of `size` bytes has of one of `room` bytes; the rest is zero. */
static inline void tenon_read(void *out, size_t room, const void *record, size_t size) {
  memset(out, 0, room);
  memcpy(out, record, size < room ? size : room);
}

/* A function's body. */
static inline tenon_body tenon_body_of(const tenon_host_ir *ir, const tenon_function *function) {
  tenon_body body;
  memset(&body, 0, sizeof body);
  ir->function_body(function, &body, sizeof body);
  return body;
}

/* The body of a transaction as it stands: read it again after every edit. */
static inline tenon_body tenon_body_now(const tenon_host_ir *ir, tenon_transaction *transaction) {
  tenon_body body;
  const tenon_body *now = ir->transaction_body(transaction);
  tenon_read(&body, sizeof body, now, now->size);
  return body;
}

/* A node; `index` is below node_count. */
static inline tenon_node tenon_node_at(const tenon_body *body, uint32_t index) {
  tenon_node node;
  const char *at = (const char *)body->nodes + (size_t)index * body->node_stride;
  tenon_read(&node, sizeof node, at, body->node_stride);
  return node;
}

/* A constant; `index` is below constant_count. */
static inline tenon_constant tenon_constant_at(const tenon_body *body, uint32_t index) {
  tenon_constant constant;
  const char *at = (const char *)body->constants + (size_t)index * body->constant_stride;
  tenon_read(&constant, sizeof constant, at, body->constant_stride);
  return constant;
}

/* What a node is replaced by in this transaction; itself when it is not. */
static inline uint32_t tenon_resolve(const tenon_body *body, uint32_t node) {
  while (node < body->replaced_len && body->replaced[node] != node) node = body->replaced[node];
  return node;
}

/* Operand `position` of node `index`; `position` is below the node's len. */
static inline uint32_t tenon_operand(const tenon_body *body, uint32_t index, uint32_t position) {
  uint32_t operand = body->operands[tenon_node_at(body, index).start + position];
  return index < body->base_len ? tenon_resolve(body, operand) : operand;
}

/* A term; `index` is one that the host gave. */
static inline tenon_term tenon_term_at(const tenon_term_table *terms, uint32_t index) {
  tenon_term term;
  uint64_t biased = (uint64_t)index + 1024;
  int chunk = 53 - __builtin_clzll(biased);
  const char *base = (const char *)__atomic_load_n(&terms->chunks[chunk], __ATOMIC_ACQUIRE);
  size_t offset = (size_t)(biased - ((uint64_t)1024 << chunk));
  tenon_read(&term, sizeof term, base + offset * terms->stride, terms->stride);
  return term;
}

/* The text of a string term, borrowed for as long as the table; empty for any other. */
static inline tenon_str tenon_string(const tenon_term_table *terms, uint32_t index) {
  tenon_term term = tenon_term_at(terms, index);
  tenon_str text = {NULL, 0};
  if (term.kind == TENON_TERM_STR) {
    text.data = (const char *)term.children;
    text.len = term.len;
  }
  return text;
}

/* Child `position` of a term that is no string; 0 when it has none there. */
static inline uint32_t tenon_child(const tenon_term *term, uint32_t position) {
  if (term->kind == TENON_TERM_STR || position >= term->len) return 0;
  return ((const uint32_t *)term->children)[position];
}

/* The value under a key of a dictionary term; 0 when there is none. */
static inline uint32_t tenon_entry(const tenon_term_table *terms, uint32_t dict, const char *key) {
  tenon_term term = tenon_term_at(terms, dict);
  uint32_t i;
  if (term.kind != TENON_TERM_DICT) return 0;
  for (i = 0; i + 1 < term.len; i += 2) {
    if (tenon_str_is(tenon_string(terms, tenon_child(&term, i)), key)) return tenon_child(&term, i + 1);
  }
  return 0;
}

#ifdef __cplusplus
}
#endif

#endif
