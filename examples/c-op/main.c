/* Calls what was compiled of tests/fused.ir:

     tenon compile tests/fused.ir -o fused.so
     cc main.c -I. fused.so -Wl,-rpath,'$ORIGIN' -o fused && ./fused          */

#include <stdio.h>

#include "fused.h"

int main(void) {
  const float x[2 * 3] = {1, 2, 3, 4, 5, 6};
  const float w[3 * 4] = {1, 0, -1, 0, 0, 1, 0, 0, 0, 0, 0, 1};
  float z[2 * 4];
  int32_t status = fused_call(2, x, w, z);
  if (status != TENON_OK) return fprintf(stderr, "status %d\n", (int)status), 1;
  for (int i = 0; i < 8; i++) printf("%.4f%s", z[i], i % 4 == 3 ? "\n" : " ");
  return 0;
}
