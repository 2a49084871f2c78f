/* Plugins that do harm: HARM says what, WHEN says when. */
#define _GNU_SOURCE
#include <tenon_plugin.h>

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOTHING 0
#define ABORT 1
#define SEGFAULT 2
#define EXIT 3
#define HANG 4
#define HOG 5
#define DOUBLE_FREE 6
#define THREAD 7
#define REPLACE 8
#define TALK 9
#define FAIL 10
#define SLOW 11
#define FORK 12
#define WATCH 13
#define SILENT 14
#define RANDOM 15
#define FORGET_REFUSALS 16
#define DEAF 17
#define KILL_SELF 18
#define KILL_PARENT 19
#define TERMINATE_PARENT 20
#define FLOOD 21
#define REPORT_MUCH 22
#define PAINT 23
#define EXIT_IN_THREAD 24
#define LEAVE 25
#define CHATTER 26
#define FORK_AND_EXIT 27
#define SYSTEM_CALL 28
#define IN_PARALLEL 29

#define OPENING 0
#define OPENING_IN_HOST 1
#define CLOSING 2
#define RUNNING 3

#ifndef HARM
#define HARM NOTHING
#endif
#ifndef WHEN
#define WHEN RUNNING
#endif
#ifndef ID
#define ID "test.harmful"
#define PASS "test.Harm"
#endif

#ifdef STARTED
/* Says that the pass runs, by a file that whoever waits for it looks for. */
static void say_started(void) {
  FILE *file = fopen(STARTED, "w");
  if (!file) abort();
  fclose(file);
}
#else
static void say_started(void) {}
#endif

static void *for_ever(void *argument) {
  for (;;) pause();
  return argument;
}

/* Puts libother.so, which stands beside this library, into its place. */
static void replace(void) {
  Dl_info info;
  char other[4096];
  if (!dladdr((void *)replace, &info) || strlen(info.dli_fname) > 4000) abort();
  snprintf(other, sizeof other, "%s.other", info.dli_fname);
  rename(other, info.dli_fname);
}

/* Ends the program from a thread that is nobody's. */
static void *exits(void *argument) {
  exit(0);
  return argument;
}

/* Writes to what is open from a descriptor on, so that there is always something to read. */
static void flood(int from) {
  static char spaces[1 << 16];
  memset(spaces, ' ', sizeof spaces);
  for (;;) {
    for (int fd = from; fd < 32; fd++) {
      if (write(fd, spaces, sizeof spaces) < 0) continue;
    }
  }
}

static int is_child;

static void do_harm(void) {
  volatile char *nowhere = NULL;
  void *volatile block;
  pthread_t thread;
  switch (HARM) {
    case ABORT:
      fprintf(stderr, "this is the end\n");
      abort();
    case SEGFAULT:
      *nowhere = 1;
      break;
    case EXIT:
      exit(0);
    case HANG:
      for (;;) pause();
    case HOG:
      for (;;) {
        block = malloc(16 << 20);
        if (!block) abort();
        memset(block, 1, 16 << 20);
      }
    case DOUBLE_FREE:
      block = malloc(64);
      free(block);
      free(block);
      break;
    case THREAD:
      if (pthread_create(&thread, NULL, for_ever, NULL)) abort();
      break;
    case REPLACE:
      replace();
      break;
    case FORK:
      /* In the child that tries the library out: nobody would end what the host starts. */
      if (is_child && fork() == 0) for (;;) pause();
      break;
    case SLOW:
      sleep(1);
      break;
    case KILL_SELF:
      kill(getpid(), SIGKILL);
      break;
    case KILL_PARENT:
      if (is_child) kill(getppid(), SIGKILL);
      break;
    case TERMINATE_PARENT:
      if (is_child) kill(getppid(), SIGTERM), sleep(1);
      break;
    case FLOOD:
      flood(3);
      break;
    case EXIT_IN_THREAD:
      if (pthread_create(&thread, NULL, exits, NULL)) abort();
      pthread_join(thread, NULL);
      break;
    case LEAVE:
      _exit(0);
    case SYSTEM_CALL:
      syscall(SYS_exit_group, 0);
      break;
    case CHATTER:
      flood(2);
      break;
    case FORK_AND_EXIT:
      if (fork() == 0) exit(0);
      wait(NULL);
      break;
    case TALK:
      printf("{\"sha256\": \"of the plugin's own\"}\n");
      fflush(stdout);
      break;
  }
}

static void __attribute__((constructor)) opening(int argc, char **argv) {
  is_child = argc > 1 && strncmp(argv[1], "plugin-", 7) == 0;
  if (WHEN == OPENING || (WHEN == OPENING_IN_HOST && !is_child)) do_harm();
}

static void __attribute__((destructor)) closing(void) {
  if (WHEN == CLOSING) do_harm();
}

static uint32_t count(void) { return 1; }

static tenon_str name(uint32_t index) { return tenon_text(index == 0 ? PASS : ""); }

/* A dictionary with the time in it. */
static uint32_t random_attrs(const tenon_host_ir *ir, tenon_host host) {
  static const tenon_ids none = {NULL, 0};
  struct timespec now;
  uint32_t entry[2];
  tenon_ids entries = {entry, 2};
  clock_gettime(CLOCK_MONOTONIC, &now);
  entry[0] = ir->symbol(host.run, tenon_text("now"));
  entry[1] = ir->intern(host.run, TENON_TERM_INT, 0, (uint64_t)now.tv_nsec, none);
  return ir->intern(host.run, TENON_TERM_DICT, 0, 0, entries);
}

/* Ends the program on whatever thread is not the pass's own. */
static void abort_elsewhere(void *state, uint64_t index) {
  (void)index;
  if (!pthread_equal(*(pthread_t *)state, pthread_self())) abort();
  usleep(1000);
}

/* The function with a new root, which is like the old one or has the time in its attributes. */
static const tenon_function *with_new_root(const tenon_host_ir *ir, tenon_host host, const tenon_function *function) {
  tenon_transaction *edit = ir->edit(host.run, function);
  tenon_body body = tenon_body_of(ir, function);
  tenon_node root = tenon_node_at(&body, body.root);
  uint32_t operands[64], number;
  tenon_ids ids = {operands, root.len};
  if (root.len > 64) abort();
  for (number = 0; number < root.len; number++) operands[number] = tenon_operand(&body, body.root, number);
  if (HARM == RANDOM) root.attrs = random_attrs(ir, host);
  ir->set_root(edit, ir->push(edit, &root, sizeof root, ids));
  return ir->finish(edit);
}

static void *run(uint32_t index, tenon_host host, const void *unit, const tenon_module *module) {
  const tenon_host_ir *ir = (const tenon_host_ir *)tenon_table(host, TENON_HOST_IR_INTERFACE);
  const tenon_host_services *services =
      (const tenon_host_services *)tenon_table(host, TENON_HOST_SERVICES_INTERFACE);
  (void)index, (void)module;
  if (!ir || !services) return NULL;
  if (WHEN == RUNNING) {
    services->report(host.run, TENON_REPORT_WARNING, tenon_text("about to begin"));
    say_started();
    if (HARM == FAIL) {
      services->fail(host.run, TENON_FAIL_ERROR, tenon_text("not this one"), 1);
      return NULL;
    }
    if (HARM == WATCH) {
      while (!services->is_cancelled(host.run)) usleep(1000);
      services->fail(host.run, TENON_FAIL_CANCELLED, tenon_text("cancelled"), TENON_NONE);
      return NULL;
    }
    switch (HARM) {
      case SILENT:
        return NULL;
      case REPORT_MUCH: {
        static char much[20 << 20];
        memset(much, 'm', sizeof much - 1);
        services->report(host.run, TENON_REPORT_NOTE, tenon_text(much));
        break;
      }
      case PAINT:
        services->report(host.run, TENON_REPORT_NOTE, tenon_text("\033[31mred \342\200\256txt"));
        break;
      case DEAF:
        if (services->is_cancelled(host.run)) for (;;) pause();
        break;
      case IN_PARALLEL: {
        pthread_t own = pthread_self();
        services->parallel_for(host.run, 1000, abort_elsewhere, &own);
        break;
      }
      case RANDOM:
      case FORGET_REFUSALS:
        return (void *)with_new_root(ir, host, (const tenon_function *)unit);
    }
    do_harm();
  }
  ir->function_retain((const tenon_function *)unit);
  return (void *)unit;
}

static const tenon_pass_table passes = {sizeof(tenon_pass_table), count, name, run};

TENON_PLUGIN(
    TENON_PLUGIN_RECORD(ID, "1.0.0", "Does harm")
    TENON_PASS_RECORD(PASS, "function", "Does harm.", TENON_TEXT_KEY("phase", "optimize")),
    passes);
