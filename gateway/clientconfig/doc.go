// Package clientconfig edits the config files of MCP clients and restores them byte for
// byte.
//
// It starts nothing, asks nobody and prints nothing: what users should hear is in what it
// returns, and never holds a value that could be secret. Which servers are taken is up to
// others.
package clientconfig
