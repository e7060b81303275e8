package doctor_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"goblin/gateway/config"
	"goblin/gateway/doctor"
	"goblin/gateway/e2e"
	"goblin/registry/report"
)

func TestMain(m *testing.M) {
	if err := e2e.ProvideTestServer(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

type obj = map[string]any

func script(t *testing.T, s obj) config.Server {
	t.Helper()
	e2e.Use()
	text, err := json.Marshal(s)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "script.json")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return config.Server{Command: e2e.TestServer, Args: []string{path}}
}

// examine checks a server named "it".
func examine(t *testing.T, s config.Server, change ...func(*doctor.Options)) report.Diagnosis {
	t.Helper()
	s.Name = "it"
	if s.Type == "" {
		s.Type = config.Stdio
	}
	if s.StartupTimeout == 0 {
		s.StartupTimeout = 20 * time.Second
	}
	s.Timeout = 20 * time.Second
	o := doctor.Options{
		Version: "test", Logins: t.TempDir(), Folder: t.TempDir(),
		Config: &config.Config{Path: filepath.Join(t.TempDir(), "goblin.yaml"), Servers: []config.Server{s}, Gateway: config.Gateway{MaxName: 51}},
	}
	for _, c := range change {
		c(&o)
	}
	return doctor.Server(t.Context(), o, &o.Config.Servers[0])
}

func last(t *testing.T, r report.Diagnosis) report.Check {
	t.Helper()
	require.NotEmpty(t, r.Checks)
	return r.Checks[len(r.Checks)-1]
}

// outline summarizes a report.
func outline(r report.Diagnosis) (all []string) {
	for _, c := range r.Checks {
		all = append(all, fmt.Sprintf("%s %s", c.Name, c.State))
	}
	return all
}

func executable(t *testing.T, path, text string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	e2e.WriteProgram(t, path, text)
	return path
}
