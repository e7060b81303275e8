package gateway

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"goblin/gateway/demo"
	"goblin/gateway/e2e"
)

// demoEnv makes the test program one of the demo servers.
const demoEnv = "GOBLIN_TEST_DEMO"

func TestMain(m *testing.M) {
	if name := os.Getenv(demoEnv); name != "" {
		if err := demo.Run(context.Background(), name, os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	if err := e2e.ProvideTestServer(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}
