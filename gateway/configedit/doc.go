// Package configedit edits the text of the configuration file and keeps every other byte.
//
// Each edit is checked: the new text must parse to the intended result. A File belongs to
// one goroutine. The package does not start servers or interpret their keys.
package configedit
