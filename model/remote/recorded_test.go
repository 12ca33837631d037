package remote_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// recorded is one exchange of real traffic with a provider.
type recorded struct {
	name        string
	url         string
	request     string
	status      int
	header      http.Header
	contentType string
	body        string
}

// streamed reports whether the reply was asked for as a stream.
func (r recorded) streamed() bool {
	return strings.Contains(r.url, ":streamGenerateContent?alt=sse") || strings.Contains(r.url, "stream") && strings.Contains(r.url, "amazonaws.com") ||
		strings.Contains(strings.ReplaceAll(r.request, " ", ""), `"stream":true`)
}

// unavailable ends a test whose recordings can't be had. They belong to others
// and are no part of this repository; a machine that is meant to judge has to
// have them.
func unavailable(t *testing.T, format string, args ...any) {
	t.Helper()
	message := fmt.Sprintf(format, args...)
	if os.Getenv("CI") != "" || os.Getenv("SYNAPSE_RECORDINGS") == "required" {
		t.Fatalf("no recordings: %s", message)
	}
	t.Skipf("no recordings: %s (CI, or SYNAPSE_RECORDINGS=required, makes this a failure)", message)
}

// module returns the folder of a module at a version, from the module cache or
// the module proxy. It is not a dependency: nothing of it is compiled, and it
// stands in no go.mod. Its content is checked against the sum given here.
func module(t *testing.T, path, version, sum string) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", path+"@"+version)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GONOSUMDB="+path)
	out, err := cmd.Output()
	var got struct{ Dir, Sum, Error string }
	if jsonErr := json.Unmarshal(out, &got); jsonErr != nil || got.Error != "" || got.Dir == "" {
		unavailable(t, "go mod download %s@%s: %v %s", path, version, err, got.Error)
	}
	if got.Sum != sum {
		t.Fatalf("%s@%s has sum %s, want %s", path, version, got.Sum, sum)
	}
	return got.Dir
}

// cassettes reads recordings in go-vcr's format.
func cassettes(t *testing.T, root string) []recorded {
	t.Helper()
	var all []recorded
	walk(t, root, ".yaml", func(file string, data []byte) {
		var c struct {
			Interactions []struct {
				Request struct {
					URL  string `yaml:"url"`
					Body string `yaml:"body"`
				} `yaml:"request"`
				Response struct {
					Body    string              `yaml:"body"`
					Headers map[string][]string `yaml:"headers"`
					Code    int                 `yaml:"code"`
				} `yaml:"response"`
			} `yaml:"interactions"`
		}
		if err := yaml.Unmarshal(data, &c); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for i, in := range c.Interactions {
			header := http.Header{}
			for name, values := range in.Response.Headers {
				header[http.CanonicalHeaderKey(name)] = values
			}
			all = append(all, recorded{
				name: fmt.Sprintf("%s#%d", file, i), url: in.Request.URL, request: in.Request.Body,
				status: in.Response.Code, header: header, contentType: header.Get("Content-Type"), body: in.Response.Body,
			})
		}
	})
	return all
}

// transcripts reads recordings in the httprr format: two lengths, then a
// request and a response of those.
func transcripts(t *testing.T, root string) []recorded {
	t.Helper()
	var all []recorded
	walk(t, root, ".httprr", func(file string, data []byte) {
		head, rest, ok := bytes.Cut(data, []byte("\n"))
		if !ok || !strings.HasPrefix(string(head), "httprr trace v1") {
			t.Fatalf("%s: not a transcript", file)
		}
		for i := 0; len(bytes.TrimSpace(rest)) > 0; i++ {
			var n, m int
			line, after, _ := bytes.Cut(rest, []byte("\n"))
			if _, err := fmt.Sscanf(string(line), "%d %d", &n, &m); err != nil || n+m > len(after) {
				t.Fatalf("%s: entry %d: bad lengths %q", file, i, line)
			}
			question, answer := after[:n], after[n:n+m]
			rest = after[n+m:]
			req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(question)))
			if err != nil {
				continue // a database's traffic, for one
			}
			asked, err := io.ReadAll(req.Body)
			if err != nil {
				t.Fatalf("%s: entry %d: request: %v", file, i, err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(answer)), req)
			if err != nil {
				t.Fatalf("%s: entry %d: response: %v", file, i, err)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatalf("%s: entry %d: body: %v", file, i, err)
			}
			all = append(all, recorded{
				name: fmt.Sprintf("%s#%d", file, i), url: req.RequestURI, request: string(asked),
				status: resp.StatusCode, header: resp.Header, contentType: resp.Header.Get("Content-Type"), body: string(body),
			})
		}
	})
	return all
}

// walk reads every file of an extension below a folder, in order.
func walk(t *testing.T, root, ext string, each func(file string, data []byte)) {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(file) == ext {
			files = append(files, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		each(filepath.ToSlash(name), data)
	}
}
