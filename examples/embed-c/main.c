/* A program that runs a compiled model: three digits, drawn by hand, in one call.

     tenon compile examples/digits/digits.onnx -o digits.so
     cc examples/embed-c/main.c -I. digits.so -Wl,-rpath,'$ORIGIN' -o embed-c && ./embed-c          */

#include <stdio.h>

#include "digits.h"

/* Digits as 8 rows of 8 characters: '.' is paper, and letters are ink, 'p' the darkest. */
static const char *const DRAWN[3][8] = {
    {"...bpc..", "...lm...", "..hoba..", ".aohamk.", ".ipglpd.", ".emppk..", "...bpe..", "...dpb.."},
    {"..epoe..", "..hmio..", "...d.oe.", ".....lf.", ".....od.", "..kjjo..", "..pppomd", "..gpmjhc"},
    {"..gpnmj.", "..jljpd.", "..oehm..", ".agapc..", ".bkmplf.", ".dlonkb.", "..cpc...", "..im...."},
};

int main(void) {
  float images[3 * 8 * 8], probabilities[3 * 10];
  for (int digit = 0; digit < 3; digit++)
    for (int pixel = 0; pixel < 64; pixel++) {
      char drawn = DRAWN[digit][pixel / 8][pixel % 8];
      images[64 * digit + pixel] = drawn == '.' ? 0.0f : (float)(drawn - 'a' + 1) / 16;
    }

  /* Plain arrays: the batch first, since the model leaves it open. It allocates the workspace and frees it. */
  int32_t status = digits_call(3, images, probabilities);
  if (status != TENON_OK) return fprintf(stderr, "status %d\n", (int)status), 1;
  for (int digit = 0; digit < 3; digit++) {
    int best = 0;
    for (int guess = 1; guess < 10; guess++)
      if (probabilities[10 * digit + guess] > probabilities[10 * digit + best]) best = guess;
    printf("%d ", best);
  }
  puts("");

  /* What does not fit is a status, which says the argument, and nothing is written. */
  int64_t shape[3] = {3, 8, 8};
  DLTensor flat = {images, {kDLCPU, 0}, 3, {kDLFloat, 32, 1}, shape, NULL, 0};
  uint64_t bytes = 0;
  status = digits_sizes(&flat, NULL, &bytes);
  printf("error %d of argument %d\n", TENON_ERROR(status), TENON_ERROR_ARGUMENT(status));
  return status == TENON_OK;
}
