//go:build browser

package export_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry/export"
)

// browser is a headless Chromium that is controlled by the DevTools protocol over pipes.
type browser struct {
	t       *testing.T
	in      *os.File
	answers chan message
	session string
	next    int
	// problems contains errors and warnings of the console, and refused requests.
	problems []string
}

type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct{ Message string }
}

func startBrowser(t *testing.T) *browser {
	t.Helper()
	program, err := exec.LookPath("chromium")
	require.NoError(t, err, "install chromium")
	fromHere, in, err := os.Pipe()
	require.NoError(t, err)
	out, toHere, err := os.Pipe()
	require.NoError(t, err)
	profile, err := os.MkdirTemp("", "chromium")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	cmd := exec.CommandContext(ctx, program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-extensions", "--hide-scrollbars", "--remote-debugging-pipe", "--user-data-dir="+profile, "about:blank")
	cmd.ExtraFiles = []*os.File{fromHere, toHere}
	require.NoError(t, cmd.Start())
	fromHere.Close()
	toHere.Close()
	b := &browser{t: t, in: in, answers: make(chan message, 1000)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(b.answers)
		r := bufio.NewReaderSize(out, 1<<20)
		for {
			text, err := r.ReadBytes(0)
			var m message
			if err != nil || json.Unmarshal(text[:len(text)-1], &m) != nil {
				return
			}
			select {
			case b.answers <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		in.Close()
		out.Close()
		cmd.Wait()
		<-read
		// Processes of the browser may outlive it for a moment, and write files.
		require.Eventually(t, func() bool { return os.RemoveAll(profile) == nil }, time.Minute, 10*time.Millisecond)
	})
	var target struct{ TargetID, SessionID string }
	b.do(&target, "Target.createTarget", map[string]any{"url": "about:blank"})
	b.do(&target, "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true})
	b.session = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.do(nil, domain+".enable", nil)
	}
	return b
}

// do sends a command and waits for its answer.
func (b *browser) do(result any, method string, params any) {
	b.t.Helper()
	b.next++
	m := map[string]any{"id": b.next, "method": method, "params": params}
	if params == nil {
		m["params"] = struct{}{}
	}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	text, err := json.Marshal(m)
	require.NoError(b.t, err)
	_, err = b.in.Write(append(text, 0))
	require.NoError(b.t, err)
	for a := range b.answers {
		if a.ID != b.next {
			b.note(a)
			continue
		}
		require.Nil(b.t, a.Error, "%s: %v", method, a.Error)
		if result != nil {
			require.NoError(b.t, json.Unmarshal(a.Result, result))
		}
		return
	}
	require.NoError(b.t, errors.New("chromium exited"), method)
}

func (b *browser) note(m message) {
	switch m.Method {
	case "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Network.loadingFailed":
		b.problems = append(b.problems, m.Method+" "+string(m.Params))
	case "Network.requestWillBeSent":
		if !strings.Contains(string(m.Params), `"url":"file:`) {
			b.problems = append(b.problems, "request "+string(m.Params))
		}
	}
}

func (b *browser) open(path string, width, height int) {
	b.t.Helper()
	b.do(nil, "Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})
	b.do(nil, "Page.navigate", map[string]any{"url": "file://" + path})
	b.until(`document.readyState === "complete" && document.getElementById("count") !== null && document.getElementById("count").textContent !== ""`)
}

// eval evaluates an expression. Promises are awaited.
func (b *browser) eval(expression string) any {
	b.t.Helper()
	var r struct {
		Result           struct{ Value any }
		ExceptionDetails json.RawMessage
	}
	b.do(&r, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true})
	require.Empty(b.t, string(r.ExceptionDetails), expression)
	return r.Result.Value
}

// until waits for a condition: it checks it in each frame.
func (b *browser) until(condition string) {
	b.t.Helper()
	for range 1000 {
		if b.eval("new Promise((done) => setTimeout(() => done(Boolean("+condition+")), 10))") == true {
			return
		}
	}
	require.Fail(b.t, "never true: "+condition, "%.2000s", strings.Join(b.problems, "\n"))
}

func (b *browser) text(selector string) string {
	b.t.Helper()
	return fmt.Sprint(b.eval("document.querySelector(" + quote(selector) + ").innerText"))
}

func quote(s string) string { text, _ := json.Marshal(s); return string(text) }

func (b *browser) keys(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		text := key
		if len(key) > 1 {
			text = map[string]string{"Enter": "\r"}[key]
		}
		b.do(nil, "Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": key, "text": text, "windowsVirtualKeyCode": map[string]int{"Enter": 13, "Escape": 27}[key]})
		b.do(nil, "Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key})
	}
}

// click clicks the middle of an element.
func (b *browser) click(selector string) {
	b.t.Helper()
	at := b.eval("(() => { const r = document.querySelector(" + quote(selector) + ").getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()").([]any)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		b.do(nil, "Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1})
	}
}

// picture saves a screenshot in the folder of the variable PICTURES, if it is set.
func (b *browser) picture(name string) {
	b.t.Helper()
	folder := os.Getenv("PICTURES")
	if folder == "" {
		return
	}
	var shot struct{ Data string }
	b.do(&shot, "Page.captureScreenshot", nil)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644))
}

func (b *browser) setDark(dark bool) {
	value := "light"
	if dark {
		value = "dark"
	}
	b.do(nil, "Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": value}}})
}

func pageOf(t *testing.T, path string) string {
	t.Helper()
	text, _ := write(t, path, export.HTML, export.Options{Version: "0.9.0"})
	page := filepath.Join(t.TempDir(), "page.html")
	require.NoError(t, os.WriteFile(page, []byte(text), 0o600))
	return page
}

func TestBrowserShowsTheTimeLineAtTwoWidths(t *testing.T) {
	page := pageOf(t, example)
	for _, size := range []struct {
		name          string
		width, height int
		dark          bool
	}{{"wide", 1440, 900, false}, {"wide-dark", 1440, 900, true}, {"narrow", 390, 844, false}, {"narrow-dark", 390, 844, true}} {
		t.Run(size.name, func(t *testing.T) {
			b := startBrowser(t)
			b.setDark(size.dark)
			b.open(page, size.width, size.height)
			require.Contains(t, b.text("#count"), "21 requests")
			require.Contains(t, b.text("#rows"), "my-agent")
			require.Contains(t, b.text("#rows"), "shop_counter")
			require.Contains(t, b.text("#notes"), "3 lines missing")
			b.picture(size.name)
			require.LessOrEqual(t, b.eval("document.documentElement.scrollWidth"), float64(size.width), "nothing may be wider than the window")

			b.keys("/", "s", "h", "o", "p", "_", "h", "a", "n", "g", "Enter")
			require.Contains(t, b.text("#count"), "1 request of 21", "the filter finds the call and its arguments")
			b.eval("document.activeElement.blur()")
			b.click(`.row[aria-label*="shop_hang"]`)
			detail := b.text("#detail")
			for _, want := range []string{"tools/call shop_hang", "8.2 s", "User answered in", `"hours": 1`, "done", "CAUSED: 4", "elicitation/create"} {
				require.Contains(t, detail, want)
			}
			b.picture(size.name + "-detail")
			b.keys("Escape")
			require.Equal(t, true, b.eval(`document.getElementById("detail").hidden`))
			for _, tab := range []struct{ id, want string }{{"servers", "Order desk 2.3.0"}, {"changes", `argument "n" is now required`}} {
				b.click("#tab-" + tab.id)
				require.Contains(t, b.text("#view-"+tab.id), tab.want)
				b.picture(size.name + "-" + tab.id)
				require.LessOrEqual(t, b.eval("document.documentElement.scrollWidth"), float64(size.width))
			}
			require.Equal(t, "undefined", b.eval("typeof window.pwned"), "texts of the recording must not run")
			require.Empty(t, b.problems)
		})
	}
}

func TestBrowserRunsNothingOfTheRecording(t *testing.T) {
	b := startBrowser(t)
	b.open(pageOf(t, example), 1440, 900)
	b.eval(`document.getElementById("filter").value = "onerror"; document.getElementById("filter").dispatchEvent(new Event("input"))`)
	b.click(".row:not(.group)")
	require.Contains(t, b.text("#detail"), "</script><script>window.pwned=1</script>")
	require.Contains(t, b.text("#detail"), `\u202e\u001b[31m`)
	b.click("#tab-changes")
	require.Equal(t, "undefined", b.eval("typeof window.pwned"))
	require.Empty(t, b.problems, "a refused script would be a problem of the console")
	require.Equal(t, false, b.eval(`(() => { const s = document.createElement("script"); s.textContent = "window.pwned = 3"; document.body.append(s); return window.pwned === 3; })()`), "the policy must refuse scripts")
}

func TestBrowserKeepsThousandsOfCallsUsable(t *testing.T) {
	lines := make([]string, 0, export.MaxPageCalls+500)
	for i := range cap(lines) {
		lines = append(lines, fmt.Sprintf(`{"type":"request","time":"2026-01-02T03:%02d:%02d.%03dZ","n":%d,"session":"s%d","client":"c%d","server":"v","method":"tools/call","name":"t%d","took":%d,"outcome":"success","params":{"name":"t","arguments":{"i":%d}},"answer":{}}`,
			i/3600%60, i/60%60, i%1000, i+1, i%7, i%7, i%50, i%400, i))
	}
	b := startBrowser(t)
	b.open(pageOf(t, recordingOf(t, lines...)), 1440, 900)
	require.Contains(t, b.text("#count"), "20,000 requests")
	require.Contains(t, b.text("#notes"), "the page shows the first 20000 of 20500")
	require.Less(t, b.eval(`document.querySelectorAll(".row").length`), float64(100), "only visible rows may be in the document")
	b.click("#scroll")
	b.keys("Escape", "Escape")
	b.eval(`document.getElementById("scroll").focus()`)
	b.do(nil, "Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": "End", "windowsVirtualKeyCode": 35})
	b.until(`document.querySelector(".row.selected") !== null`)
	b.keys("Enter")
	require.Contains(t, b.text("#detail"), "tools/call")
	b.keys("+", "+", "+")
	b.picture("many")
	require.Empty(t, b.problems)
}
