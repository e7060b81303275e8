// Package repocheck tests rules of this repository: imports, package sizes, documents and
// programs.
package repocheck
