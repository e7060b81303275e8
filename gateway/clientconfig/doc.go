// Package clientconfig knows the config files of MCP clients: where they are on each system, how
// the servers in them become entries of Goblin's config, and how Goblin's own entry is put
// into them and taken out again, with every other byte as it was.
//
// It starts nothing, asks nobody and prints nothing: what users should hear is in what it
// returns, and never holds a value that could be secret. Which servers are taken is up to
// others.
package clientconfig
