// Package cache provides collections with a size limit that drop their oldest members.
package cache
