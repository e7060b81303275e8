// Package bench measures the real binary as a client sees it: the same calls
// to a backend asked directly and through Goblin, in turn within one run, so
// that the difference means something on a noisy machine. It holds benchmarks
// only, under the tag bench.
package bench
