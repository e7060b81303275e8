// Package e2e holds the worlds, clients and servers that end-to-end tests share.
//
// They build the real binary and look at it from outside: through stdin and stdout, the
// socket, HTTP, exit codes, /proc and the evidence of scripted backends
// (goblin/gateway/internal/testserver). Each folder holds the tests of one concern, and
// nothing else. The tests in this folder cover resources, edits of the config and the
// docs; the tag release adds the files that "task release" made in dist.
//
// No test imports anything of Goblin, so that none can share its mistakes. A
// test waits for events with generous deadlines and never sleeps to let
// something happen; "nothing was sent" is shown by a round trip that would have
// arrived later.
//
// Messages are also drawn at random and compared with what the server says
// without Goblin. A failure names the seed that draws them again
// (-rapid.seed); -rapid.checks asks for more of them, FuzzTransparent draws
// them from the fuzzer's bytes.
//
// The name of a test ends in the behaviour it shows and holds the number of the
// requirement it covers, such as R3_03.
//
// Environment: GOBLIN_E2E_BINARY names a binary to test instead of building
// one; GOBLIN_E2E_RACE=1 builds with the race detector. GOCOVERDIR is handed on
// to a binary that was built with -cover.
//
// Without a build tag, only tests in this folder run: resources, edits of the config and
// the docs. The tag e2e adds the other folders, variants and rare faults. The tag faults
// adds tests that take as long as the limits that they show. The tags
// interop and conformance add comparisons with programs from npm, which they
// install into the user's cache folder. Of those, interop/testdata/matrix is a
// module of its own, for programs that use the official Go SDK.
//
// The build tag soak adds a daemon among servers that fail and clients that come
// and go, for SOAK (10m), by the decisions that SOAK_SEED stands for (a random
// one, which is printed).
package e2e
