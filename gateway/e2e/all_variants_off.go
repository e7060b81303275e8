//go:build !e2e && !faults

package e2e

// Thorough is whether tests run over all variants that differ in kind.
const Thorough = false
