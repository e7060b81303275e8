// Package repocheck tests rules of this repository: who may import whom, how large packages
// may be, which tests documents name, and the table of packages in CONTRIBUTING.md.
package repocheck
