// Package configedit changes Goblin's config as the text that a user has written: servers
// are added, taken out, turned off and on, and every other byte stays, comments, order,
// indentation and line ends too. What a change has made is read again, and compared with
// what it should have made, before anybody gets it.
//
// It must not know what servers are for, nor start any.
package configedit
