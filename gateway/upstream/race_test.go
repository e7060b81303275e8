//go:build race

package upstream

// racing says that this test looks for races.
const racing = true
