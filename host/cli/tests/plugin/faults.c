/* Plugins that are wrong in one way each, which FAULT names; without it the plugin is right. */
#include <tenon_plugin.h>

#define NO_FAULT 0
#define ROOT_VERSION 1
#define SHORT_TABLE 2
#define NULL_ENTRY 3
#define OTHER_LAYOUT 4
#define LONGER_LAYOUT 5
#define NO_PASS_TABLE 6
#define PASS_MISSING 7
#define PASS_EXTRA 8
#define OTHER_MANIFEST 9
#define SAYS_NOTHING 10
#define FAILS_AND_RETURNS 11
#define CANCELS 12
#define FINISHES_NOTHING 13
#define IGNORES_REFUSALS 14
#define NO_NOTE 15
#define PASSES_WITHOUT_END 16

#ifndef FAULT
#define FAULT NO_FAULT
#endif

static uint32_t count(void) {
  switch (FAULT) {
    case PASS_MISSING: return 0;
    case PASS_EXTRA: return 2;
    case PASSES_WITHOUT_END: return 4000000000u;
    default: return 1;
  }
}

static tenon_str name(uint32_t index) { return tenon_text(index == 0 ? "test.C" : "test.Extra"); }

static void *run(uint32_t index, tenon_host host, const void *unit, const tenon_module *module) {
  const tenon_function *function = (const tenon_function *)unit;
  const tenon_host_ir *ir = (const tenon_host_ir *)tenon_table(host, TENON_HOST_IR_INTERFACE);
  const tenon_host_services *services =
      (const tenon_host_services *)tenon_table(host, TENON_HOST_SERVICES_INTERFACE);
  tenon_transaction *edit;
  (void)index, (void)module;
  switch (FAULT) {
    case SAYS_NOTHING:
      return NULL;
    case FAILS_AND_RETURNS:
      services->fail(host.run, TENON_FAIL_ERROR, tenon_text("returned all the same"), TENON_NONE);
      break;
    case CANCELS:
      services->fail(host.run, TENON_FAIL_CANCELLED, tenon_text("enough"), TENON_NONE);
      return NULL;
    case FINISHES_NOTHING:
      function = ir->finish(ir->edit(host.run, NULL));
      if (!function) services->fail(host.run, TENON_FAIL_ERROR, services->last_error(host.run), TENON_NONE);
      return (void *)function;
    case IGNORES_REFUSALS: {
      tenon_node call = {TENON_KIND_CALL, 0, 0, 0, 0, 0, 0, 0, 0};
      uint32_t operands[1] = {12345};
      tenon_ids ids = {operands, 1};
      edit = ir->edit(host.run, function);
      ir->replace(edit, 0, ir->push(edit, &call, sizeof call, ids));
      function = ir->finish(edit);
      if (!function) services->fail(host.run, TENON_FAIL_ERROR, services->last_error(host.run), 0);
      return (void *)function;
    }
  }
  ir->function_retain(function);
  return (void *)function;
}

/* A table of a later version: one entry more. */
typedef struct longer_table {
  tenon_pass_table base;
  void (*later)(void);
} longer_table;

static void later(void) {}

static const longer_table passes = {
    {FAULT == SHORT_TABLE ? 16 : FAULT == LONGER_LAYOUT ? sizeof(longer_table) : sizeof(tenon_pass_table),
     count, name, FAULT == NULL_ENTRY ? NULL : run},
    later};

#define PLUGIN TENON_PLUGIN_RECORD("test.c", "1.0.0", "Wrong in one way")
#define PASS(doc) TENON_PASS_RECORD("test.C", "function", doc, "")

static const tenon_field wrong_layout[] = {
    TENON_FIELD(tenon_pass_table, size, "size_t"),
    TENON_FIELD(tenon_pass_table, count, "uint64_t()"),
    {TENON_TEXT("label"), TENON_TEXT("tenon_str(uint32_t)"), 16, 8},
};
static const tenon_field wrong_node_layout[] = {
    TENON_FIELD(tenon_node, kind, "uint16_t"),
    {TENON_TEXT("flags"), TENON_TEXT("uint32_t"), 4, 4},
};
static const tenon_field longer_layout[] = {
    TENON_FIELD(tenon_pass_table, size, "size_t"),
    TENON_FIELD(tenon_pass_table, count, "uint32_t()"),
    TENON_FIELD(tenon_pass_table, name, "tenon_str(uint32_t)"),
    TENON_FIELD(tenon_pass_table, run,
                "void *(uint32_t, tenon_host, const void *, const tenon_module *)"),
    TENON_FIELD(longer_table, later, "void()"),
};
#define LAYOUT(fields) {fields, sizeof(fields) / sizeof(tenon_field)}

static const tenon_interface interfaces[] = {
#if FAULT == OTHER_LAYOUT
    {TENON_TEXT("tenon.pass/1"), LAYOUT(wrong_layout), &passes},
    {TENON_TEXT("tenon_node"), LAYOUT(wrong_node_layout), NULL},
#elif FAULT == LONGER_LAYOUT
    {TENON_TEXT("tenon.pass/1"), LAYOUT(longer_layout), &passes},
    {TENON_TEXT("tenon.later/1"), LAYOUT(wrong_layout), &passes},
#elif FAULT == NO_PASS_TABLE
    TENON_INTERFACE("tenon.later/1", tenon_pass_table, &passes),
#else
    TENON_INTERFACE("tenon.pass/1", tenon_pass_table, &passes),
#endif
    TENON_INTERFACE("tenon.host.ir/1", tenon_host_ir, NULL),
};

#define MANIFEST PLUGIN PASS("Does nothing.")
#define OTHER PLUGIN PASS("Does something.")


#if FAULT != NO_NOTE
static const struct {
  uint32_t name_size, text_size, type;
  char name[8];
  char text[(sizeof(MANIFEST) + 3) / 4 * 4];
} note __attribute__((section(TENON_NOTE_SECTION), used, aligned(4))) = {
    6, (sizeof(MANIFEST) + 3) / 4 * 4, 0x54435031u, "TENON", MANIFEST};
#endif

const tenon_root tenon_plugin_root = {
    FAULT == ROOT_VERSION ? 2 : TENON_ROOT_ABI, 0,
#if FAULT == OTHER_MANIFEST
    TENON_TEXT(OTHER),
#else
    TENON_TEXT(MANIFEST),
#endif
    {interfaces, sizeof(interfaces) / sizeof(tenon_interface)}};

/* Each plugin uses some of these. */
const void *const tenon_unused[] = {wrong_layout, wrong_node_layout, longer_layout};
