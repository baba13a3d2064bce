/*
 * fuzz.h - the one function of a fuzz target, as libFuzzer and run_seeds.c call it.
 */
#ifndef BATON_TESTS_FUZZ_H
#define BATON_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
