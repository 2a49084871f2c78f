// A driver of NVIDIA's as far as `tenon run` asks one, with memory of this process. Each kernel that is started adds the numbers of its
// first two arguments into its third one, as many as there are threads up to COUNT. What is asked of it is written to LOG.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int Result;
typedef uint64_t Address;

static void say(const char *what, const char *about, unsigned number) {
  FILE *log = fopen(getenv("LOG"), "a");
  fprintf(log, "%s %s %u\n", what, about, number);
  fclose(log);
}

static int refused(const char *what) {
  const char *refuse = getenv("REFUSE");
  return refuse && !strcmp(refuse, what);
}

Result cuInit(unsigned flags) { (void)flags; return refused("init") ? 100 : 0; }
Result cuDeviceGetCount(int *count) { *count = refused("devices") ? 0 : 1; return 0; }
Result cuDeviceGet(int *device, int number) { *device = number; return 0; }
Result cuDeviceGetAttribute(int *value, int which, int device) {
  (void)which, (void)device;
  *value = 0;
  return 0;
}
Result cuDevicePrimaryCtxRetain(void **context, int device) {
  (void)device;
  *context = context;
  return 0;
}
Result cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return 0; }
Result cuCtxSetCurrent(void *context) { (void)context; return 0; }
Result cuCtxGetCurrent(void **context) { *context = NULL; return 0; }
Result cuCtxSynchronize(void) { return 0; }
Result cuStreamSynchronize(void *stream) { (void)stream; return refused("run") ? 700 : 0; }
Result cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  (void)stream, (void)event, (void)flags;
  return 0;
}
Result cuEventCreate(void **event, unsigned flags) { (void)flags; *event = event; return 0; }
Result cuEventRecord(void *event, void *stream) { (void)event, (void)stream; return 0; }
Result cuEventDestroy_v2(void *event) { (void)event; return 0; }

Result cuModuleLoadData(void **module, const void *image) {
  *module = strdup(image);
  say("load", strstr(image, ".version 7.0") ? "7.0" : "?", 1);
  return 0;
}
Result cuModuleUnload(void *module) { free(module); return 0; }
Result cuModuleGetFunction(void **function, void *module, const char *name) {
  char entry[512];
  snprintf(entry, sizeof entry, ".visible .entry %s(", name);
  *function = strdup(name);
  return strstr(module, entry) ? 0 : 500;
}

Result cuMemAlloc_v2(Address *address, size_t bytes) {
  void *memory = refused("memory") ? NULL : aligned_alloc(256, (bytes + 255) / 256 * 256);
  *address = (Address)(uintptr_t)memory;
  return memory ? 0 : 2;
}
Result cuMemFree_v2(Address address) { free((void *)(uintptr_t)address); return 0; }
Result cuMemsetD8Async(Address to, unsigned char value, size_t bytes, void *stream) {
  (void)stream;
  memset((void *)(uintptr_t)to, value, bytes);
  return 0;
}
Result cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, void *stream) {
  (void)stream;
  memcpy((void *)(uintptr_t)to, from, bytes);
  say("up", "bytes", (unsigned)bytes);
  return 0;
}
Result cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, void *stream) {
  (void)stream;
  memcpy(to, (void *)(uintptr_t)from, bytes);
  say("down", "bytes", (unsigned)bytes);
  return 0;
}
Result cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void *stream) {
  (void)stream;
  memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
  return 0;
}

Result cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, void *stream, void **arguments, void **extra) {
  (void)shared, (void)stream, (void)extra;
  const float *a = (const float *)(uintptr_t) * (Address *)arguments[0];
  const float *b = (const float *)(uintptr_t) * (Address *)arguments[1];
  float *sum = (float *)(uintptr_t) * (Address *)arguments[2];
  unsigned threads = gx * gy * gz * bx * by * bz, count = (unsigned)atoi(getenv("COUNT"));
  for (unsigned at = 0; at < threads && at < count; at++) sum[at] = a[at] + b[at];
  say("start", function, threads);
  return 0;
}

Result cuGetErrorName(Result error, const char **name) {
  *name = error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "?";
  return 0;
}
Result cuGetErrorString(Result error, const char **text) {
  *text = error == 2 ? "out of memory" : error == 700 ? "an illegal memory access" : "it failed";
  return 0;
}
