// Package names maps tool names and URIs of servers to the names that clients see.
//
// It uses only the names of the configured servers, so listed names do not depend on
// which servers run. It also expands URI templates (RFC 6570) and matches URIs with them.
// All functions are safe for concurrent use.
//
// Templates and URIs are untrusted. Matching uses sets of reachable positions instead of
// backtracking. So its time is at most proportional to the product of both lengths. A
// lookup among many templates stops when its [MatchBudget] is spent.
//
// Matching is lenient: values need not be percent-encoded, and query members may be
// reordered or missing.
package names
