// What LLVM knows of processors and their features, for which its C interface has no question.
//
// The names belong to LLVM's own tables and live as long as the program.

#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/TargetParser/AArch64TargetParser.h>
#include <llvm/TargetParser/Triple.h>

#include <memory>
#include <string>

namespace {

using Sink = void (*)(void *list, const char *name);

std::unique_ptr<llvm::MCSubtargetInfo> subtarget(const char *triple_text, const char *cpu,
                                                 const char *features) {
  std::string error;
  const llvm::Triple triple(triple_text);
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (target == nullptr) {
    return nullptr;
  }
  return std::unique_ptr<llvm::MCSubtargetInfo>(target->createMCSubtargetInfo(triple, cpu, features));
}

/// What LLVM calls a processor: those of Arm have other names as well, which its descriptions do not list.
std::string resolved(const char *triple, const char *cpu) {
  return llvm::Triple(triple).isAArch64() ? llvm::AArch64::resolveCPUAlias(cpu).str() : cpu;
}

} // namespace

/// The processors of an architecture, or the features that they may have.
extern "C" bool tenon_llvm_names(const char *triple, bool of_features, void *list, Sink push) {
  const auto info = subtarget(triple, "", "");
  if (info == nullptr) {
    return false;
  }
  if (of_features) {
    for (const auto &feature : info->getAllProcessorFeatures()) {
      push(list, feature.Key);
    }
  } else {
    for (const auto &processor : info->getAllProcessorDescriptions()) {
      push(list, processor.Key);
    }
    if (llvm::Triple(triple).isAArch64()) {
      llvm::SmallVector<llvm::StringRef, 128> all;
      llvm::AArch64::fillValidCPUArchList(all);
      for (const llvm::StringRef name : all) {
        push(list, name.data());
      }
    }
  }
  return true;
}

/// The features of a processor. What is said of no processor to tune for leaves out those that only order instructions.
extern "C" bool tenon_llvm_features(const char *triple, const char *cpu, const char *features, void *list,
                                    Sink push) {
  const auto info = subtarget(triple, cpu, features);
  if (info == nullptr) {
    return false;
  }
  info->setDefaultFeatures(resolved(triple, cpu), "", features);
  for (const auto &feature : info->getAllProcessorFeatures()) {
    if (info->getFeatureBits().test(feature.Value)) {
      push(list, feature.Key);
    }
  }
  return true;
}
