//go:build e2e || faults

package e2e

// AllVariants reports whether tests run all variants instead of the first few.
const AllVariants = true
