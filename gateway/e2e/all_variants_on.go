//go:build e2e || faults

package e2e

// AllVariants reports whether tests run over every variant instead of the first few.
const AllVariants = true
