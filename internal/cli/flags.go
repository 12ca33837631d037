package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/host"
	"github.com/synapse-agents/synapse/policy"
)

// The output formats of run.
const (
	formatText   = "text"
	formatJSON   = "json"
	formatStream = "stream-json"
)

// flags are the common flags.
type flags struct {
	workspace       string
	model           string
	effort          string
	agent           string
	agents          string
	readonly        bool
	allowedTools    []string
	disallowedTools []string
	maxTurns        int
	maxTokens       int64
	maxCost         float64
	timeout         time.Duration
	format          string
	schema          string
	noColor         bool
	plain           bool
	verbose         bool
	prompt          string
	resume          string
	goOn            bool
	fork            bool

	set *pflag.FlagSet
}

func (f *flags) register(set *pflag.FlagSet) {
	f.set = set
	set.StringVarP(&f.workspace, "workspace", "w", ".", "the `directory` to work in")
	set.StringVarP(&f.model, "model", "m", "", "the main agent's `model`, as provider:model or an alias")
	set.StringVar(&f.effort, "effort", "", "reasoning `effort`: "+efforts())
	set.StringVar(&f.agent, "agent", "", "the `agent` that answers, instead of the built-in main agent")
	set.StringVar(&f.agents, "agents", "", "further agents: a `JSON` object {\"agents\": {…}}, or a file that holds one")
	set.BoolVar(&f.readonly, "readonly", false, "no agent has a tool that changes anything")
	set.StringArrayVar(&f.allowedTools, "allowed-tools", nil, "the only `tools` any agent has, comma-separated; \"execute(git *)\" allows such calls alone")
	set.StringArrayVar(&f.disallowedTools, "disallowed-tools", nil, "`tools` that no agent has; \"execute(rm *)\" denies such calls")
	set.IntVar(&f.maxTurns, "max-turns", 0, "turns of the main agent")
	set.Int64Var(&f.maxTokens, "max-tokens", 0, "tokens in and out, sub-agents included")
	set.Float64Var(&f.maxCost, "max-cost-usd", 0, "dollars, sub-agents included")
	set.DurationVar(&f.timeout, "timeout", 0, "time from start to end, such as 10m")
	set.StringVar(&f.format, "output-format", formatText, "`format` of the answer: text, json or stream-json")
	set.StringVar(&f.schema, "output-schema", "", "JSON `schema` of the answer: inline, or a file")
	set.StringVar(&f.resume, "resume", "", "go on with a conversation or a request that was cut off: its `ID`, name or \"last\"")
	set.BoolVar(&f.goOn, "continue", false, "go on with the last conversation in this workspace")
	set.BoolVar(&f.fork, "fork", false, "with --resume or --continue: leave that conversation as it is, and begin another with what was said in it")
	set.BoolVar(&f.noColor, "no-color", false, "no colours (NO_COLOR does the same)")
	set.BoolVar(&f.plain, "plain", false, "lines of text alone, for screen readers: no screen, nothing that moves")
	set.BoolVarP(&f.verbose, "verbose", "v", false, "say more on standard error")
}

func efforts() string {
	var words []string
	for _, e := range synapse.Efforts() {
		words = append(words, string(e))
	}
	return strings.Join(words, ", ")
}

// options turns the flags into what a host is made of.
func (a *app) options() (host.Options, error) {
	f := &a.flags
	opt := host.Options{
		Workspace: f.workspace, Home: a.p.Home, ExeDir: a.p.ExeDir, Environ: a.p.Environ,
		Main: f.agent, AgentsJSON: f.agents,
		Limits: synapse.Limits{
			Turns: f.maxTurns, Tokens: f.maxTokens, CostUSD: f.maxCost, Time: synapse.Duration(f.timeout),
		},
		Log: a.log(),
	}
	switch {
	case f.maxTurns < 0, f.maxTokens < 0, f.maxCost < 0, f.timeout < 0:
		return opt, usagef("a limit can't be negative")
	case f.format != formatText && f.format != formatJSON && f.format != formatStream:
		return opt, usagef("--output-format %q: want text, json or stream-json", f.format)
	}
	setting := func(flag, key, value string) {
		opt.Settings = append(opt.Settings, host.Setting{Flag: "--" + flag, Key: key, Value: value})
	}
	if f.model != "" {
		setting("model", "model", f.model)
	}
	if f.effort != "" {
		setting("effort", "reasoning_effort", f.effort)
	}
	if f.set.Changed("readonly") {
		setting("readonly", "readonly", strconv.FormatBool(f.readonly))
	}
	if f.set.Changed("allowed-tools") {
		opt.AllowedTools = splitAll(f.allowedTools)
	}
	opt.DisallowedTools = splitAll(f.disallowedTools)
	if f.schema != "" {
		schema, err := readSchema(f.schema)
		if err != nil {
			return opt, err
		}
		opt.OutputSchema = schema
	}
	return opt, nil
}

// splitAll reads comma-separated entries, given once or several times.
func splitAll(values []string) []string {
	out := []string{}
	for _, v := range values {
		out = append(out, policy.SplitList(v)...)
	}
	return out
}

// readSchema takes a schema as it stands, or the file that holds it.
func readSchema(value string) (json.RawMessage, error) {
	data := []byte(value)
	if !strings.HasPrefix(strings.TrimSpace(value), "{") {
		var err error
		if data, err = os.ReadFile(value); err != nil {
			return nil, usagef("--output-schema: %v; give a JSON Schema, or a file that holds one", err)
		}
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, usagef("--output-schema: %s", jsonProblem(data, err))
	}
	return data, nil
}

// jsonProblem says what is wrong with a JSON text, with line and column.
func jsonProblem(data []byte, err error) string {
	offset := int64(-1)
	switch e := err.(type) {
	case *json.SyntaxError:
		offset = e.Offset
	case *json.UnmarshalTypeError:
		offset = e.Offset
	}
	if offset < 0 || offset > int64(len(data)) {
		return err.Error()
	}
	before := string(data[:offset])
	line := strings.Count(before, "\n") + 1
	column := len([]rune(before[strings.LastIndexByte(before, '\n')+1:]))
	return fmt.Sprintf("line %d, column %d: %v", line, column, err)
}
