//go:build race

package lua_test

// racing reports whether the race detector is enabled.
const racing = true
