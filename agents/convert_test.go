package agents_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/compile"
	"github.com/synapse-agents/synapse/policy"
)

// hostTools are those of the application, with two servers of tools.
func hostTools() []compile.HostTool {
	var list []compile.HostTool
	for _, name := range slices.Concat(compile.FrameworkTools(), []string{
		"find_files", "search_files", "patch", "fetch_url", "web_search", "skill", "write_todos", "task",
		"mcp__github__get", "mcp__github__put", "mcp__db__query",
	}) {
		list = append(list, compile.HostTool{Name: name})
	}
	return list
}

var subjectsOf = map[string][]string{
	"execute":   {"git status", "git", "git push x", "rm -rf x", "npm test", "ls && rm -rf x"},
	"fetch_url": {"https://pkg.go.dev/fmt", "https://evil.example/x", "https://example.com/a/b"},
	"task":      {"reviewer", "tester"},
	"skill":     {"go", "deploy"},
}

var paths = []string{".env", "a/.env", "docs/x.md", "docs/a/x.md", "docs", "src/main.go", "src/a/b.go", "x"}

// may is what a run of the definition would be let do, as the compiler and the
// policy see it: of every tool, for some calls.
func may(d *agents.Definition) map[string]policy.Action {
	p, _, _ := compile.Effective(compile.ToolInput{App: true, Tools: hostTools(), Definition: d, DepthLeft: 1})
	out := map[string]policy.Action{}
	for _, t := range hostTools() {
		subjects, kind := subjectsOf[t.Name], policy.SubjectText
		switch t.Name {
		case "execute":
			kind = policy.SubjectCommand
		case "fetch_url":
			kind = policy.SubjectURL
		case "read_file", "write_file", "edit_file", "patch", "find_files", "search_files", "ls", "glob", "grep":
			subjects, kind = paths, policy.SubjectPath
		}
		for _, s := range append([]string{"y"}, subjects...) {
			out[t.Name+" "+s] = p.Check(policy.Call{Tool: t.Name, Kind: kind, Subjects: []string{s}}).Action
		}
	}
	return out
}

var rank = map[policy.Action]int{policy.Allow: 0, policy.Ask: 1, policy.Deny: 2}

// widened lists what got lets an agent do and want does not.
func widened(got, want *agents.Definition) []string {
	var list []string
	a, b := may(got), may(want)
	about := func(name string) bool {
		return policy.MatchName(policy.Canonical(name, nil), "patch") || policy.MatchName(name, "patch")
	}
	ruled := slices.ContainsFunc(want.DisallowedTools, about) || slices.ContainsFunc(want.Permissions, func(r policy.Rule) bool { return about(r.Tool) })
	for call, action := range a {
		if path, ok := strings.CutPrefix(call, "patch "); ok && !ruled &&
			rank[action] >= max(rank[b["edit_file "+path]], rank[b["write_file "+path]]) {
			continue // what may be edited and written may be patched
		}
		if rank[action] < rank[b[call]] {
			list = append(list, fmt.Sprintf("%s: %s, was %s", call, action, b[call]))
		}
	}
	slices.Sort(list)
	if want.MaxTurns > 0 && (got.MaxTurns == 0 || got.MaxTurns > want.MaxTurns) {
		list = append(list, fmt.Sprintf("max_turns %d, was %d", got.MaxTurns, want.MaxTurns))
	}
	if l := got.Limits.Min(want.Limits); l != got.Limits {
		list = append(list, fmt.Sprintf("limits %+v, were %+v", got.Limits, want.Limits))
	}
	if want.Mode != agents.ModeAll && got.Mode != want.Mode {
		list = append(list, fmt.Sprintf("mode %s, was %s", got.Mode, want.Mode))
	}
	if want.Disabled && !got.Disabled {
		list = append(list, "on, was off")
	}
	return list
}

// anyDefinition makes a definition of the things that definitions hold.
func anyDefinition(r *rand.Rand) *agents.Definition {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	some := func(list ...string) []string {
		var out []string
		for _, s := range list {
			if r.IntN(3) == 0 {
				out = append(out, s)
			}
		}
		return out
	}
	d := &agents.Definition{
		Name:        pick("reviewer", "Code Reviewer", "审查", "a/b", "x.y", "true", "7"),
		Description: pick("Reviews code.", "Use when: the build is red", "a\nb\n\nc", `"quoted" # and more`, "- list", "{x}"),
		Prompt:      pick("You review.", "# Title\n\ntext\n\n---\n\nmore", "'''", "tools: [Read]\nx", "a \\ \"b\"", "tab\there"),
		Mode:        agents.ModeAll, Ownership: agents.OwnershipTask, Origin: agents.Native,
	}
	switch r.IntN(5) {
	case 0:
		d.Tools = agents.ToolRule{Mode: agents.ToolsInherit}
	case 1:
		d.Tools = agents.ToolRule{Mode: agents.ToolsFramework}
	case 2:
		d.Tools = agents.ToolRule{Mode: agents.ToolsExact, Names: []string{"*"}}
	default:
		d.Tools = agents.ToolRule{Mode: agents.ToolsExact, Names: some("read_file", "write_file", "Edit", "Bash", "find_files", "search_files", "fetch_url",
			"web_search", "skill", "patch", "mcp__github__get", "mcp__db__*", "*_file", "task", "write_todos", "mcp__git*")}
	}
	if r.IntN(2) == 0 {
		d.DisallowedTools = some("write_file", "Edit", "patch", "execute", "Bash", "fetch_url", "mcp__github__*", "mcp__*", "*_file", "search_files", "nosuch")
	}
	if r.IntN(2) == 0 {
		for range r.IntN(4) {
			tool := pick("execute", "edit_file", "write_file", "read_file", "*", "mcp__db__query", "fetch_url", "task", "Bash", "search_files", "patch", "mcp__*")
			pattern := "*"
			if r.IntN(2) == 0 {
				switch tool {
				case "execute", "Bash":
					pattern = pick("git *", "rm -rf *", "git status", "npm *")
				case "edit_file", "write_file", "read_file", "search_files", "patch":
					pattern = pick("docs/**", "*.env", "**/.env", "src/*.go", "docs/", "x", "{a,src}/**", "docs/*", "a?/x")
				case "fetch_url":
					pattern = pick("https://pkg.go.dev/*", "https://evil.example/*", "https://*.example.com/*")
				case "task":
					pattern = pick("reviewer", "test*")
				}
			}
			rule, err := policy.NewRule(tool, pattern, pick("allow", "ask", "deny"), 0)
			if err == nil {
				d.Permissions = append(d.Permissions, rule)
			}
		}
	}
	if r.IntN(4) == 0 {
		d.MaxTurns = 1 + r.IntN(40)
	}
	if r.IntN(6) == 0 {
		d.Limits.Time = synapse.Duration(time.Duration(1+r.IntN(400)) * 10 * time.Second)
	}
	if r.IntN(10) == 0 {
		d.Limits.Tokens = 1000
	}
	if r.IntN(6) == 0 {
		d.Mode = agents.Mode(pick("primary", "subagent"))
	}
	d.Disabled = r.IntN(12) == 0
	d.CanSpawn = r.IntN(4) == 0
	d.Background = r.IntN(5) == 0
	if r.IntN(3) == 0 {
		d.Model = pick("inherit", "openai:gpt-5", "sonnet")
	}
	if r.IntN(3) == 0 {
		d.ReasoningEffort = synapse.Efforts()[r.IntN(6)]
	}
	if r.IntN(5) == 0 {
		t := 0.3
		d.Temperature = &t
	}
	if r.IntN(5) == 0 {
		d.Skills = []string{"go"}
	}
	return d
}

func describe(d *agents.Definition) string {
	text, err := d.Markdown()
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// TestConvertNeverWidens converts definitions at random to every product and
// reads them again as that product: what is written without an error lets the
// agent do nothing more than before, and what is written without a word is the
// same agent.
func TestConvertNeverWidens(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	written, refused, silent := map[string]int{}, map[string]int{}, map[string]int{}
	for range max(few(300), 200) {
		d := anyDefinition(r)
		for _, target := range agents.ConvertTargets() {
			data, name, diags, err := agents.Convert(d, target, agents.ConvertOptions{})
			var wide *agents.WideningError
			if errors.As(err, &wide) {
				refused[target]++
				if !agents.HasErrors(diags) {
					t.Errorf("%s: refused without an error among the diagnostics: %v", target, err)
				}
				if data, _, _, err := agents.Convert(d, target, agents.ConvertOptions{Force: true}); err != nil || len(data) == 0 {
					t.Errorf("%s: not even by force: %v", target, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v\n%s", target, err, describe(d))
			}
			written[target]++
			back, more := agents.Parse(name, data, agents.ParseOptions{Origin: target})
			if back == nil || back.Broken {
				t.Fatalf("%s: what was written does not load: %v\n%s", target, more, data)
			}
			if w := widened(back, d); len(w) > 0 {
				t.Fatalf("%s: the agent may do more than before: %v\n%s\nfrom\n%s", target, w, data, describe(d))
			}
			if back.Prompt != d.Prompt || back.Description != d.Description {
				t.Fatalf("%s: %s", target, cmp.Diff([]string{d.Prompt, d.Description}, []string{back.Prompt, back.Description}))
			}
			if len(diags) > 0 {
				continue
			}
			silent[target]++
			if w := widened(d, back); len(w) > 0 {
				t.Fatalf("%s: the agent may do less than before, and nothing is said of it: %v\n%s\nfrom\n%s", target, w, data, describe(d))
			}
			got := []any{back.Name, back.Model, back.ReasoningEffort, back.Background, back.Skills, back.Temperature, back.Mode}
			want := []any{d.Name, d.Model, d.ReasoningEffort, d.Background, d.Skills, d.Temperature, d.Mode}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s: changed without a word (-want +got):\n%s\n%s", target, diff, data)
			}
		}
	}
	t.Logf("written %v, refused %v, without a word %v", written, refused, silent)
	for _, target := range agents.ConvertTargets() {
		if written[target] == 0 || silent[target] == 0 || target != agents.Native && refused[target] == 0 {
			t.Errorf("%s: written %d, refused %d, without a word %d: the test has no teeth", target, written[target], refused[target], silent[target])
		}
	}
}

// TestConvertPairs takes definitions at random through every pair of formats: from
// ours to one, from that to the other, and back to ours. On no way does an agent
// come to do more, nor lose its prompt, and what is written in the same format
// again and again is the same text.
func TestConvertPairs(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	through := map[string]int{}
	convert := func(d *agents.Definition, target string, src []byte) (*agents.Definition, []byte) {
		data, name, _, err := agents.Convert(d, target, agents.ConvertOptions{Source: src})
		var wide *agents.WideningError
		if errors.As(err, &wide) {
			return nil, nil
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s", target, err, describe(d))
		}
		back, diags := agents.Parse(name, data, agents.ParseOptions{Origin: target})
		if back == nil || back.Broken {
			t.Fatalf("%s: what was written does not load: %v\n%s", target, diags, data)
		}
		return back, data
	}
	for range 40 {
		d := anyDefinition(r)
		for _, first := range agents.ConvertTargets() {
			a, text := convert(d, first, nil)
			if a == nil {
				continue
			}
			// What means nothing there goes the first time, and nothing after that.
			if b, once := convert(a, first, text); b != nil {
				if _, again := convert(b, first, once); again != nil && !bytes.Equal(again, once) {
					t.Fatalf("%s: written again it is another text:\n%s", first, cmp.Diff(string(once), string(again)))
				}
			}
			for _, second := range agents.ConvertTargets() {
				if through[first+" "+second] >= few(18) {
					continue // often enough
				}
				b, text := convert(a, second, text)
				if b == nil {
					continue
				}
				home, _ := convert(b, agents.Native, text)
				if home == nil {
					t.Fatalf("%s to %s: ours can't say it\n%s", first, second, text)
				}
				through[first+" "+second]++
				for _, got := range []*agents.Definition{b, home} {
					if w := widened(got, d); len(w) > 0 {
						t.Fatalf("%s to %s: %v\n%s\nfrom\n%s", first, second, w, text, describe(d))
					}
					if got.Prompt != d.Prompt || got.Description != d.Description {
						t.Fatalf("%s to %s: %s", first, second, cmp.Diff([]string{d.Prompt, d.Description}, []string{got.Prompt, got.Description}))
					}
				}
			}
		}
	}
	for _, first := range agents.ConvertTargets() {
		for _, second := range agents.ConvertTargets() {
			if through[first+" "+second] == 0 {
				t.Errorf("%s to %s: not one definition went that way", first, second)
			}
		}
	}
}

// TestConvertKeepsBody: the body stays what it was to the byte, and comments
// stay where a format has any.
func TestConvertKeepsBody(t *testing.T) {
	const body = "\r\n\r\n  # Title \r\n\r\ntext  \r\n\r\n---\r\n\r\nend\t\r\n\r\n"
	src := []byte("---\r\n# who it is\r\nname: reviewer # short\r\ndescription: Reviews code.\r\n\r\n# what it has\r\ntools:\r\n  - Read # only that\r\n# the end\r\n---" + body)
	d, diags := agents.Parse("reviewer.md", src, agents.ParseOptions{Origin: "claude"})
	if d.Broken {
		t.Fatal(diags)
	}
	for _, target := range []string{"claude", "gemini", "copilot", "qwen", "opencode", agents.Native} {
		data, name, diags, err := agents.Convert(d, target, agents.ConvertOptions{Source: src})
		if err != nil {
			t.Fatalf("%s: %v", target, err)
		}
		if !bytes.HasSuffix(data, []byte("---"+body)) {
			t.Errorf("%s: the body has changed:\n%q", target, data)
		}
		for _, comment := range []string{"# who it is", "# short", "# what it has", "# only that", "# the end"} {
			if bytes.Count(data, []byte(comment)) != 1 {
				t.Errorf("%s: the comment %q is there %d times:\n%s", target, comment, bytes.Count(data, []byte(comment)), data)
			}
		}
		if strings.Contains(strings.ReplaceAll(string(data), "\r\n", ""), "\n") {
			t.Errorf("%s: line ends are mixed", target)
		}
		if back, more := agents.Parse(name, data, agents.ParseOptions{Origin: target}); back.Broken {
			t.Errorf("%s: %v %v", target, more, diags)
		}
	}
	// A document without a body of its own has the text as a string.
	toml := []byte("# who\nname = \"r\"\ndescription = 'd' # routing\n# how\ndeveloper_instructions = '''\n\nx\n  y\\n\n\n'''\n# end\n")
	c, diags := agents.Parse("r.toml", toml, agents.ParseOptions{Origin: "codex"})
	if c.Broken {
		t.Fatal(diags)
	}
	data, _, _, err := agents.Convert(c, "claude", agents.ConvertOptions{Source: toml})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasSuffix(data, []byte("---\n\nx\n  y\\n\n\n")) {
		t.Errorf("the body has changed: %q", data)
	}
	for _, comment := range []string{"# who", "# how", "# end"} {
		if !bytes.Contains(data, []byte(comment)) {
			t.Errorf("the comment %q is lost:\n%s", comment, data)
		}
	}
}

// TestConvertBack writes every product's example files as their own product
// again: then nothing is lost.
func TestConvertBack(t *testing.T) {
	for _, p := range agents.Products() {
		if !slices.Contains(agents.ConvertTargets(), p.Name) {
			continue
		}
		files, err := filepath.Glob(filepath.Join("testdata/products", p.Name, "*.*"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no examples: %v", p.Name, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			d, _ := agents.Parse(file, data, agents.ParseOptions{Origin: p.Name})
			if d == nil || d.Broken || strings.HasSuffix(file, ".json") {
				continue
			}
			out, name, diags, err := agents.Convert(d, p.Name, agents.ConvertOptions{Source: data})
			var wide *agents.WideningError
			if errors.As(err, &wide) {
				continue // what is stricter here than there has no word there
			}
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			back, more := agents.Parse(name, out, agents.ParseOptions{Origin: p.Name})
			if back.Broken {
				t.Errorf("%s: %v\n%s", file, more, out)
			}
			if w := widened(back, d); len(w) > 0 {
				t.Errorf("%s: %v\n%s", file, w, out)
			}
			if len(diags) == 0 {
				if w := widened(d, back); len(w) > 0 {
					t.Errorf("%s: less without a word: %v\n%s", file, w, out)
				}
			}
		}
	}
}

func TestConvertRefusals(t *testing.T) {
	d := &agents.Definition{Name: "x", Description: "d", Prompt: "p", Mode: agents.ModeAll, Ownership: agents.OwnershipTask}
	if _, _, _, err := agents.Convert(d, "clod", agents.ConvertOptions{}); err == nil || !strings.Contains(err.Error(), "claude") {
		t.Errorf("an unknown product: %v", err)
	}
	broken := d.Clone()
	broken.Broken = true
	if _, _, _, err := agents.Convert(broken, "claude", agents.ConvertOptions{}); err == nil {
		t.Error("a broken definition is converted")
	}
	if _, _, _, err := agents.Convert(d, "yome", agents.ConvertOptions{}); err == nil {
		t.Error("there is a writer for yome now: say so in the documentation")
	}
}
