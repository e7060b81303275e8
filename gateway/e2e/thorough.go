//go:build e2e || faults

package e2e

// thorough is whether tests run over all variants that differ in kind.
const thorough = true
