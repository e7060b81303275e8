// Package release looks at what "task release" has made in dist: packages are installed and
// removed again, bundles started, and sums compared.
package release
