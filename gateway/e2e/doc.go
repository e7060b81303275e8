// Package e2e holds the worlds, clients and servers that end-to-end tests share.
//
// The tests build the real binary and observe it from outside: stdin and stdout, the
// socket, HTTP, exit codes, /proc and scripted servers
// (goblin/gateway/internal/testserver). Each folder contains the tests of one topic. The
// tests in this folder cover resources, edits of the config and the docs. The tag release
// adds the files that "task release" created in dist.
//
// No test imports Goblin's packages, so that no test shares their mistakes. Tests wait
// for events with generous timeouts and never sleep until something happens. To show that
// a message was not sent, they make a round trip that would arrive later.
//
// Random messages are compared with the server's answers without Goblin. A failure prints
// the seed (-rapid.seed). -rapid.checks sets their number, and FuzzTransparent generates
// them from the fuzzer's bytes.
//
// A test's name ends with the behavior it shows, and contains the number of its
// requirement, such as R3_03.
//
// Environment: GOBLIN_E2E_BINARY is a binary to test instead of building one.
// GOBLIN_E2E_RACE=1 builds with the race detector. GOCOVERDIR is passed to a binary that
// was built with -cover.
//
// Without a build tag, only the tests in this folder run. The tag e2e adds the other
// folders, variants and rare faults. The tag faults adds tests that take as long as the
// limits they show. The tags interop and conformance add comparisons with programs from
// npm, which they install into the user's cache folder. interop/testdata/matrix is a
// separate module, for programs with the official Go SDK.
//
// The tag soak adds a daemon with failing servers and changing clients, for SOAK (10m).
// SOAK_SEED repeats a run; a random seed is printed.
package e2e
