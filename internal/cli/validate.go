package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/internal/settings"
	"github.com/synapse-agents/synapse/internal/spelling"
)

// The formats of findings.
const (
	formatSARIF  = "sarif"
	formatGitHub = "github"
)

// validateFlags are the flags of `agents validate`.
type validateFlags struct {
	asJSON    bool
	format    string
	as        string
	stdinName string
	severity  []string
	ignore    []string
	elsewhere bool
	fix, diff bool
	rules     bool
	explain   string
}

func (a *app) agentsValidateCommand() *cobra.Command {
	var f validateFlags
	c := &cobra.Command{
		Use:   "validate [PATH…]",
		Short: "Check definition files",
		Long: `Checks definition files: those that are named, those in directories and those that
a pattern fits (agents/**/*.md), and without a path all of the workspace. A file is
read as the product reads it in whose place it lies (.claude/agents, .opencode/agent,
…), or as --as says; a file below any other directory that begins with a dot needs no
name, since it can go by its own. "-" checks standard input.

What is found has a code. --rules lists the codes, --explain says more of one, and
--severity and --ignore set what each counts for. --elsewhere says what every other
product would do with the file: load it, refuse it, or run its agent with all tools.

--fix mends what is safe to mend: quotes, the spelling of fields and tools, fields
without effect; all other bytes stay. --diff shows that and writes nothing.

The exit code is 0 when all files load, and 1 when one does not, something counts as
an error, or --diff has something to show. Warnings do not count.`,
		Example: `  synapse agents validate
  synapse agents validate .claude/agents 'plugins/**/agents/*.md' --elsewhere
  synapse agents validate --format sarif > agents.sarif
  synapse agents validate --fix --severity description-vague=error --ignore unknown-field
  git show HEAD:.claude/agents/x.md | synapse agents validate - --stdin-name .claude/agents/x.md`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.validate(args, &f) },
	}
	set := c.Flags()
	set.BoolVar(&f.asJSON, "json", false, "as JSON, like --format json")
	set.StringVar(&f.format, "format", formatText, "`format` of the findings: text, json, sarif (2.1.0) or github (annotations)")
	set.StringVar(&f.as, "as", "", "read the files as those of this `product`, wherever they lie")
	set.StringVar(&f.stdinName, "stdin-name", "stdin.md", "the `path` that standard input is taken to lie at")
	set.StringArrayVar(&f.severity, "severity", nil, "what a code counts for, as `CODE=error`, warning, info or off")
	set.StringArrayVar(&f.ignore, "ignore", nil, "`codes` that are not reported, comma-separated")
	set.BoolVar(&f.elsewhere, "elsewhere", false, "say what other products would do with each file")
	set.BoolVar(&f.fix, "fix", false, "mend what is safe to mend")
	set.BoolVar(&f.diff, "diff", false, "show what --fix would change, and change nothing")
	set.BoolVar(&f.rules, "rules", false, "list the codes")
	set.StringVar(&f.explain, "explain", "", "say more about a `code`")
	must(c.RegisterFlagCompletionFunc("format", oneOf(formatText, formatJSON, formatSARIF, formatGitHub)))
	must(c.RegisterFlagCompletionFunc("as", oneOf(readable()...)))
	must(c.RegisterFlagCompletionFunc("explain", oneOf(ruleCodes()...)))
	must(c.RegisterFlagCompletionFunc("ignore", oneOf(ruleCodes()...)))
	return c
}

// must is for registering what is there: a mistake in this package.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// readable are the formats that files can be read in.
func readable() []string { return append([]string{agents.Native}, agents.ProductNames()...) }

func ruleCodes() []string {
	var codes []string
	for _, r := range agents.Rules() {
		codes = append(codes, r.Code)
	}
	return codes
}

// checkCode refuses what is no code, as a usage error.
func checkCode(flag, code string) error {
	codes := ruleCodes()
	if slices.Contains(codes, code) {
		return nil
	}
	if near := spelling.Nearest(code, codes); near != "" {
		return usagef("--%s: there is no code %q: did you mean %q?", flag, code, near)
	}
	return usagef("--%s: there is no code %q; `synapse agents validate --rules` lists them", flag, code)
}

// checkProduct refuses what is no format, as a usage error.
func checkProduct(flag, name string, known []string) error {
	if slices.Contains(known, name) {
		return nil
	}
	near := ""
	if s := spelling.Nearest(name, known); s != "" {
		near = fmt.Sprintf(": did you mean %q?", s)
	}
	return usagef("--%s %q: want %s%s", flag, name, strings.Join(known, ", "), near)
}

// levels reads --severity and --ignore: what codes count for, "" for nothing.
func (f *validateFlags) levels() (map[string]agents.Severity, error) {
	levels := map[string]agents.Severity{}
	for _, entry := range splitAll(f.severity) {
		code, word, ok := strings.Cut(entry, "=")
		level := map[string]agents.Severity{"error": agents.Error, "warning": agents.Warn, "info": agents.Info, "off": ""}
		severity, known := level[word]
		if !ok || !known {
			return nil, usagef("--severity %q: want CODE=error, CODE=warning, CODE=info or CODE=off", entry)
		}
		if err := checkCode("severity", code); err != nil {
			return nil, err
		}
		levels[code] = severity
	}
	for _, code := range splitAll(f.ignore) {
		if err := checkCode("ignore", code); err != nil {
			return nil, err
		}
		levels[code] = ""
	}
	return levels, nil
}

func (a *app) validate(paths []string, f *validateFlags) error {
	if f.asJSON {
		if f.format != formatText && f.format != formatJSON {
			return usagef("choose one of --json and --format %s", f.format)
		}
		f.format = formatJSON
	}
	levels, err := f.levels()
	switch {
	case err != nil:
		return err
	case !slices.Contains([]string{formatText, formatJSON, formatSARIF, formatGitHub}, f.format):
		return usagef("--format %q: want text, json, sarif or github", f.format)
	case f.explain != "":
		if err := checkCode("explain", f.explain); err != nil {
			return err
		}
		return a.explainRule(f.explain, f.format == formatJSON)
	case f.rules:
		return a.listRules(f.format == formatJSON)
	}
	if f.as != "" {
		if err := checkProduct("as", f.as, readable()); err != nil {
			return err
		}
	}
	v := &validation{app: a, as: f.as, stdinName: f.stdinName, levels: levels, elsewhere: f.elsewhere, texts: map[string][]byte{}}
	v.readBudget()
	if err := v.read(paths); err != nil {
		return err
	}
	changes := 0
	if f.fix || f.diff {
		differences := a.p.Stdout
		if f.format != formatText { // where the report goes
			differences = a.p.Stderr
		}
		if changes, err = v.mend(f.diff, differences); err != nil {
			return err
		}
		if changes > 0 && !f.diff {
			if err := v.read(paths); err != nil {
				return err
			}
		}
	}
	v.judge()
	// What is mended of standard input goes on to standard output, and then
	// nothing else does.
	out := a.p.Stdout
	if v.stdinOut {
		out = a.p.Stderr
	}
	switch f.format {
	case formatJSON:
		err = printJSON(out, v.report())
	case formatSARIF:
		err = printJSON(out, v.sarif())
	case formatGitHub:
		err = v.annotate(out)
	default:
		err = v.text(out)
	}
	if err != nil {
		return err
	}
	return v.verdict(f.format == formatJSON || f.format == formatSARIF, f.diff && changes > 0)
}

// readBudget takes how many tokens descriptions may take from the settings.
func (v *validation) readBudget() {
	v.budget = agents.DescriptionBudget
	src, err := v.sources()
	if err != nil {
		return
	}
	set, _, err := settings.Load(src)
	if err != nil {
		// Files can be checked all the same.
		fmt.Fprintf(v.p.Stderr, "synapse: warning: settings can't be read, so the descriptions may take %s: %s\n",
			count(int64(v.budget), "token"), clean(err.Error()))
		return
	}
	v.budget = set.SubagentDescriptionBudget.V
}

// verdict is how the check ends.
func (v *validation) verdict(quiet, pending bool) error {
	bad, errs := 0, 0
	for _, f := range v.files {
		if !f.Loads {
			bad++
			continue
		}
		for _, d := range f.Diagnostics {
			if d.Severity == agents.Error {
				errs++
			}
		}
	}
	var why []string
	if bad > 0 {
		why = append(why, fmt.Sprintf("%d of %s not load", bad, countDo(len(v.files), "definition")))
	}
	if errs > 0 {
		why = append(why, count(int64(errs), "error"))
	}
	if pending {
		why = append(why, "there is something to mend: --fix does it")
	}
	if len(why) == 0 {
		return nil
	}
	return &codedError{code: exitFailed, err: errors.New(strings.Join(why, "; ")), quiet: quiet && !pending}
}

func countDo(n int, what string) string {
	if n == 1 {
		return count(1, what) + " does"
	}
	return count(int64(n), what) + " do"
}

// report is `agents validate --json`.
func (v *validation) report() any {
	return struct {
		Files        []checkedFile    `json:"files"`
		Descriptions descriptionsCost `json:"descriptions"`
	}{v.files, v.cost}
}

// text prints a line for each definition, and under it what is wrong, with the
// line of the file.
func (v *validation) text(w io.Writer) error {
	lines := map[string][]string{}
	for _, f := range v.files {
		sign := "✓"
		if !f.Loads {
			sign = "✗"
		}
		fmt.Fprintf(w, "%s %s", sign, cleanLine(f.Path))
		if f.Name != "" {
			fmt.Fprintf(w, ": %s", cleanLine(f.Name))
		}
		fmt.Fprintln(w)
		for _, d := range f.Fixed {
			fmt.Fprintf(w, "  %s: fixed: %s [%s]\n", cleanLine(d.at(f.Path)), cleanLine(d.Message), d.Code)
		}
		for _, d := range f.Diagnostics {
			if d.Code == agents.CodeElsewhere || d.Severity == agents.Info && f.Loads && !v.flags.verbose {
				continue
			}
			fmt.Fprintf(w, "  %s: %s: %s [%s]\n", cleanLine(d.at(f.Path)), d.Severity, cleanLine(d.Message), d.Code)
			if _, read := lines[f.Path]; !read {
				lines[f.Path] = textLines(v.texts[f.Path])
			}
			writeSnippet(w, lines[f.Path], d.Line, d.Column)
			if d.Hint != "" {
				fmt.Fprintf(w, "    way out: %s\n", cleanLine(d.Hint))
			}
		}
		for _, fate := range f.Elsewhere {
			fmt.Fprintf(w, "  in %s: %s", fate.Product, fate.Outcome)
			if fate.Why != "" {
				fmt.Fprintf(w, ": %s", cleanLine(fate.Why))
			}
			fmt.Fprintln(w)
		}
	}
	if v.cost.Agents > 1 {
		fmt.Fprintf(w, "\nthe descriptions of %s take about %s of every prompt; %s are kept whole\n",
			count(int64(v.cost.Agents), "agent"), count(int64(v.cost.Tokens), "token"), number(int64(v.cost.Budget)))
	}
	return nil
}
