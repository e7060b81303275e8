// Package meta provides Goblin's own tools: catalog, describe, search, call and script.
//
// With them, a model can find one tool among hundreds without loading all definitions.
// The package only reads the registry; requests of scripts go through [Options].Ask. It
// must not depend on transports, sessions or UIs.
//
// All exported functions are safe for concurrent use. The cost of a catalog page does not
// depend on the size of the catalog, except with a MIME filter.
package meta
