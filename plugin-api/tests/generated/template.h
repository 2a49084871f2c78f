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

{{codes}}
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

{{records}}
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

{{layouts}}
/* What stands where, for ever. */
TENON_ASSERT(sizeof(void *) == 8 && sizeof(tenon_str) == 16 && sizeof(tenon_term_table) == 264);
{{pins}}
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
  static const tenon_interface tenon_plugin_interfaces[] = {{{interfaces}}};                                \
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
