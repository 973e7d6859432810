// Opens bytes as a file and reads everything in it. An Error is a fine answer to any bytes; a crash, another exception
// or a result that contradicts itself is not. Shared by the tests and the fuzz targets.
#pragma once

#include <string>

namespace waymark::test {

// True if the file was accepted and read to its end, false after an Error.
bool exercise_safetensors(std::string bytes);
bool exercise_npy(std::string bytes);
// Arrays that would be larger than 2 x file + 1 MiB, which deflate allows, are only looked at.
bool exercise_npz(std::string bytes);

// The message of reading the file called "f" to its end; empty if it is accepted.
std::string safetensors_error(std::string bytes);
std::string npy_error(std::string bytes);
std::string npz_error(std::string bytes);

}  // namespace waymark::test
