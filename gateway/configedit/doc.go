// Package configedit edits the text of the configuration file and keeps every other byte.
//
// What a change has made is read again, and compared with what it should have made, before
// anybody gets it.
//
// It must not know what servers are for, nor start any.
package configedit
