//go:build race

package lua_test

// racing says that this test looks for races.
const racing = true
