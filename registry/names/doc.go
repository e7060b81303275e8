// Package names maps tool names and URIs of servers to the names that clients see.
//
// It knows the names of the configured servers and nothing of what they list, so that a
// listed name does not depend on who is up. All functions are pure.
//
// It also expands URI templates (RFC 6570) with texts, and recognises their
// expansions, one by one or among many templates.
//
// Templates and URIs come from foreign servers. A match takes time in
// proportion to the product of the two lengths, never more: sets of reachable
// positions instead of backtracking. Both are at most 8 KiB long, with 32
// variables, and a look-up among many templates takes no more steps than its
// [MatchBudget] has. Everything is pure and immutable after its making, and safe for
// concurrent use. It knows no protocol.
//
// Matching is generous where the RFC leaves a client room: values need not be
// percent-encoded, members of a query may come in any order and be absent.
package names
