package remote_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// recorded is one exchange of real traffic.
type recorded struct {
	name    string
	url     string
	request string
	status  int
	header  http.Header
	body    string
}

// askedFor names the variable with which a machine that judges asks for the
// recordings: they belong to others, are no part of this repository, and
// without it are tested where they can be had.
const askedFor = "SYNAPSE_RECORDINGS"

// unavailable ends a test whose recordings can't be had.
func unavailable(t *testing.T, format string, args ...any) {
	t.Helper()
	message := "no recordings: " + fmt.Sprintf(format, args...)
	if os.Getenv(askedFor) != "" {
		t.Fatal(message)
	}
	t.Skipf("%s (a failure where %s is set)", message, askedFor)
}

// module returns the folder of a module, from the module cache or the proxy.
// Nothing of it is compiled and it stands in no go.mod; what it holds is checked
// against the sum given here.
func module(t *testing.T, path, version, sum string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", path+"@"+version)
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

// recordings reads every file of an extension below a folder, in order, and
// returns the exchanges and how many files there were.
func recordings(t *testing.T, root, ext string, parse func([]byte) ([]recorded, error)) ([]recorded, int) {
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
	var all []recorded
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		list, err := parse(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i := range list {
			list[i].name = fmt.Sprintf("%s#%d", filepath.ToSlash(name), i)
		}
		all = append(all, list...)
	}
	return all, len(files)
}

// parseCassette reads go-vcr's YAML.
func parseCassette(data []byte) ([]recorded, error) {
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
		return nil, err
	}
	var all []recorded
	for i, in := range c.Interactions {
		if in.Request.URL == "" || in.Response.Code == 0 {
			return nil, fmt.Errorf("interaction %d has no address or no status", i)
		}
		header := http.Header{}
		for name, values := range in.Response.Headers {
			header[http.CanonicalHeaderKey(name)] = values
		}
		all = append(all, recorded{url: in.Request.URL, request: in.Request.Body, status: in.Response.Code, header: header, body: in.Response.Body})
	}
	return all, nil
}

// parseTranscript reads the httprr format: two lengths, then a request and a
// response of those, and so on.
func parseTranscript(data []byte) ([]recorded, error) {
	head, rest, ok := bytes.Cut(data, []byte("\n"))
	if !ok || !bytes.HasPrefix(head, []byte("httprr trace v1")) {
		return nil, fmt.Errorf("not a transcript: it begins with %.40q", head)
	}
	var all []recorded
	for i := 0; len(bytes.TrimSpace(rest)) > 0; i++ {
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		var n, m int
		if _, err := fmt.Sscanf(string(line), "%d %d", &n, &m); err != nil || n < 0 || m < 0 || n > len(after) || m > len(after)-n {
			return nil, fmt.Errorf("entry %d: bad lengths %.40q", i, line)
		}
		question, answer := after[:n], after[n:n+m]
		rest = after[n+m:]
		req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(question)))
		if err != nil {
			return nil, fmt.Errorf("entry %d: request: %w", i, err)
		}
		asked, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, fmt.Errorf("entry %d: request: %w", i, err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(answer)), req)
		if err != nil {
			return nil, fmt.Errorf("entry %d: response: %w", i, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return nil, fmt.Errorf("entry %d: response: %w", i, err)
		}
		all = append(all, recorded{url: req.RequestURI, request: string(asked), status: resp.StatusCode, header: resp.Header, body: string(body)})
	}
	return all, nil
}

// unframe writes Amazon's binary frames as the events that they hold. A frame
// is its length, that of its headers, a checksum of the two; headers; what it
// carries; and a checksum of all.
func unframe(body string) (string, error) {
	var out strings.Builder
	for rest := []byte(body); len(rest) > 0; {
		if len(rest) < 16 {
			return "", fmt.Errorf("a frame of %d bytes", len(rest))
		}
		total, headers := int(binary.BigEndian.Uint32(rest)), int(binary.BigEndian.Uint32(rest[4:]))
		switch {
		case total > len(rest) || total < 16 || headers > total-16:
			return "", fmt.Errorf("a frame of %d bytes, %d of them headers, in %d", total, headers, len(rest))
		case crc32.ChecksumIEEE(rest[:8]) != binary.BigEndian.Uint32(rest[8:]),
			crc32.ChecksumIEEE(rest[:total-4]) != binary.BigEndian.Uint32(rest[total-4:]):
			return "", fmt.Errorf("a frame of %d bytes has another checksum", total)
		}
		var payload struct {
			Bytes string `json:"bytes"`
		}
		if err := json.Unmarshal(rest[12+headers:total-4], &payload); err != nil {
			return "", fmt.Errorf("a frame's content: %w", err)
		}
		data, err := base64.StdEncoding.DecodeString(payload.Bytes)
		if err != nil {
			return "", fmt.Errorf("a frame's content: %w", err)
		}
		out.WriteString("data: " + string(data) + "\n\n")
		rest = rest[total:]
	}
	return out.String(), nil
}

func TestParseCassette(t *testing.T) {
	const good = "version: 2\ninteractions:\n- request:\n    url: http://h/v1\n    body: q\n  response:\n    code: 200\n" +
		"    headers:\n      content-type: [text/event-stream]\n    body: \"data: ä\\r\\n\"\n- request: {url: http://h/v2}\n  response: {code: 429, body: !!binary aGk=}\n"
	got, err := parseCassette([]byte(good))
	want := []recorded{
		{url: "http://h/v1", request: "q", status: 200, header: http.Header{"Content-Type": {"text/event-stream"}}, body: "data: ä\r\n"},
		{url: "http://h/v2", status: 429, header: http.Header{}, body: "hi"},
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(recorded{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, bad := range []string{"interactions: 7", "interactions:\n- request: {url: u}", "interactions:\n- response: {code: 200}", "\tno"} {
		if got, err := parseCassette([]byte(bad)); err == nil {
			t.Errorf("%q: read as %v", bad, got)
		}
	}
}

// transcript writes entries with their lengths.
func transcript(entries ...[2]string) string {
	out := "httprr trace v1\n"
	for _, e := range entries {
		out += fmt.Sprintf("%d %d\n%s%s", len(e[0]), len(e[1]), e[0], e[1])
	}
	return out
}

func TestParseTranscript(t *testing.T) {
	const question, answer = "POST http://h/v1 HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi", "HTTP/2.0 429 Too Many Requests\r\nRetry-After: 3\r\nContent-Length: 5\r\n\r\nä\n\n!"
	chunked := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
	got, err := parseTranscript([]byte(transcript([2]string{question, answer}, [2]string{question, chunked})))
	if err != nil {
		t.Fatal(err)
	}
	want := []recorded{
		{url: "http://h/v1", request: "hi", status: 429, header: http.Header{"Retry-After": {"3"}, "Content-Length": {"5"}}, body: "ä\n\n!"},
		{url: "http://h/v1", request: "hi", status: 200, header: http.Header{}, body: "abc"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(recorded{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := parseTranscript([]byte(transcript())); err != nil || got != nil {
		t.Errorf("a transcript of nothing: %v, %v", got, err)
	}
	for _, bad := range []string{"", "something else\n", "httprr trace v1\n9 9\nshort", "httprr trace v1\nx\n", "httprr trace v1\n-1 2\nab",
		transcript([2]string{"no request", answer}), transcript([2]string{question, "no answer"})} {
		if got, err := parseTranscript([]byte(bad)); err == nil {
			t.Errorf("%q: read as %v", bad, got)
		}
	}
}

// framedBytes writes one of Amazon's frames.
func framedBytes(headers, payload string) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(16+len(headers)+len(payload)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, headers...), payload...)
	return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
}

func TestUnframe(t *testing.T) {
	one, two := framedBytes("headers", `{"bytes":"eyJhIjoxfQ=="}`), framedBytes("", `{"bytes":"e30=","p":"abc"}`)
	got, err := unframe(one + two)
	if want := "data: {\"a\":1}\n\ndata: {}\n\n"; err != nil || got != want {
		t.Errorf("%q, %v: want %q", got, err, want)
	}
	for _, bad := range []string{"short", one[:len(one)-1], one[:len(one)-1] + "x", "\x00\x00\x00\x10\xff\xff\xff\xff" + one[8:], framedBytes("", "no JSON"), framedBytes("", `{"bytes":"?"}`)} {
		if got, err := unframe(bad); err == nil {
			t.Errorf("%q: read as %q", bad, got)
		}
	}
}
