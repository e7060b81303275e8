// Package cache provides collections of bounded size that drop their oldest members.
//
// They know nothing of the catalog, and store no definitions.
package cache
