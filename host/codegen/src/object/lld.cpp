// LLVM's linker, for programs with LLVM inside.

#include "lld/Common/Driver.h"

LLD_HAS_DRIVER(elf)
LLD_HAS_DRIVER(wasm)

// Links as the program `words[0]` (`ld.lld` or `wasm-ld`) does with the others; its exit code.
extern "C" int tenon_lld(const char *const *words, size_t count) {
  const lld::DriverDef drivers[] = {{lld::Gnu, &lld::elf::link}, {lld::Wasm, &lld::wasm::link}};
  return lld::lldMain({words, count}, llvm::outs(), llvm::errs(), drivers).retCode;
}
