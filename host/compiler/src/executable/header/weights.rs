//! What a header says of constants that lie in a file.

use crate::runtime::weights::WeightsInfo;

use super::{c_string, comment};

/// What mapping a file needs.
pub(super) const INCLUDES: &str = "#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif
";

/// The functions, and what is known of the file.
pub(super) fn functions(prefix: &str, weights: &WeightsInfo) -> String {
    let upper = prefix.to_ascii_uppercase();
    let WeightsInfo { file, bytes, .. } = weights;
    let mut text = format!(
        "
/* The constants lie in the file {}, which is opened once, before anything runs: until then every call is
   TENON_ERROR_WEIGHTS. The file is mapped, and must stay as it is; another one may take its name. */
#define {upper}_WEIGHTS_FILE {}
#define {upper}_WEIGHTS_BYTES UINT64_C({bytes})
",
        comment(file),
        c_string(file)
    );
    text.push_str(&FUNCTIONS.replace("UPPER", &upper).replace("PREFIX", prefix));
    text
}

const FUNCTIONS: &str = r#"
/* Takes the weights that somebody has brought into memory, at a multiple of 64: TENON_OK, or TENON_ERROR_WEIGHTS where they are
   others, or not whole. They stay where they are as long as anything may run. The first are kept, and what comes later is
   TENON_OK and not used. With NULL and 0 there are none any more. */
int32_t PREFIX_set_weights(const void *data, uint64_t bytes);

/* The weights that are used; NULL where there are none. */
const void *PREFIX_weights(void);

#if defined(__unix__) || defined(__APPLE__)
/* Maps the file, unless there are weights: TENON_OK, or TENON_ERROR_WEIGHTS where it is not there, or is another one. Threads may call
   it at once. */
static inline int32_t PREFIX_open_weights(const char *path) {
  if (PREFIX_weights()) return TENON_OK;
  if (!path) return TENON_ERROR_NULL;
  int tenon_file = open(path, O_RDONLY | O_NONBLOCK);
  if (tenon_file < 0) return TENON_ERROR_WEIGHTS;
  struct stat tenon_status_of_file;
  void *tenon_data = MAP_FAILED;
  if (!fstat(tenon_file, &tenon_status_of_file) && (uint64_t)tenon_status_of_file.st_size == UPPER_WEIGHTS_BYTES)
    tenon_data = mmap(NULL, UPPER_WEIGHTS_BYTES, PROT_READ, MAP_SHARED, tenon_file, 0);
  close(tenon_file);
  if (tenon_data == MAP_FAILED) return TENON_ERROR_WEIGHTS;
  int32_t tenon_status = PREFIX_set_weights(tenon_data, UPPER_WEIGHTS_BYTES);
  if (PREFIX_weights() != tenon_data) munmap(tenon_data, UPPER_WEIGHTS_BYTES);
  return tenon_status;
}
#endif
"#;
