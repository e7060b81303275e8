// Package cli contains what all commands share: streams, config lookup, exit codes, help
// and logger.
//
// It must not depend on commands or on the gateway. An [App] is not safe for concurrent
// use. Untrusted text that is printed to a terminal is escaped by
// [goblin/registry/termtext].
package cli
