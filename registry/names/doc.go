// Package names says how things of servers are listed: under which names of tools, URIs and
// flat ids, and how clients may spell these. It knows the names of the configured servers and
// nothing of what they list, so that a listed name does not depend on who is up. All
// functions are pure.
package names
