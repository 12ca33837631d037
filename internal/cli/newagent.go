package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/host"
)

// newAgent are the flags of `agents new`.
type newAgent struct {
	description, tools, model, effort, prompt string
	user, project                             bool
}

func (a *app) agentsNewCommand() *cobra.Command {
	var n newAgent
	c := &cobra.Command{
		Use:   "new NAME",
		Short: "Write a definition file",
		Long: `Writes a definition file, for the workspace or with --user for every workspace,
and explains the agent it makes. A file that is there is never overwritten.

Without --prompt the prompt is read from standard input where something is piped
in, else it is a first draft to edit.`,
		Example: `  synapse agents new changelog --tools read_file,find_files \
    --description "Use to find out what changed between two versions."`,
		Args: exactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.newAgent(cmd.Context(), args[0], &n, cmd.Flags().Changed("tools"))
		},
	}
	f := c.Flags()
	f.StringVar(&n.description, "description", "", "when to delegate to it, a `text` that the main agent decides by")
	f.StringVar(&n.tools, "tools", "", "the `tools` it has and no others, comma-separated; without it, what sub-agents have by default")
	f.StringVar(&n.model, "model", "", "its `model`, as provider:model or an alias; without it, the main agent's")
	f.StringVar(&n.prompt, "prompt", "", "its system `prompt`")
	f.BoolVar(&n.user, "user", false, "for every workspace of this user")
	f.BoolVar(&n.project, "project", false, "for this workspace (the default)")
	return c
}

func (a *app) newAgent(ctx context.Context, name string, n *newAgent, withTools bool) error {
	if n.user && n.project {
		return usagef("choose one of --user and --project")
	}
	opt, err := a.options()
	if err != nil {
		return err
	}
	if _, err := os.Stat(opt.Workspace); err != nil && !n.user {
		return fmt.Errorf("make agent %q: %w", name, err)
	}
	text, err := a.draft(name, n, withTools)
	if err != nil {
		return err
	}
	path, err := a.newPath(opt.Workspace, name, n)
	if err != nil {
		return err
	}
	if err := writeNew(path, text); err != nil {
		return err
	}
	fmt.Fprintln(a.p.Stdout, cleanLine(path))
	if n.description == "" {
		fmt.Fprintln(a.p.Stderr, "synapse: say in its description when to delegate to it: until then only its name does")
	}
	h, err := a.inspect(ctx)
	if err != nil {
		return err
	}
	defer h.Close()
	return a.explainNew(h, strings.TrimSpace(name), path)
}

// newPath is the file that a new agent of the name is written to. It is an error
// when another file there defines the agent.
func (a *app) newPath(workspace, name string, n *newAgent) (string, error) {
	dir, layer := filepath.Join(workspace, ".synapse", "agents"), agents.LayerProject
	if n.user {
		if a.p.Home == "" {
			return "", fmt.Errorf("there is no home directory to keep an agent for every workspace in")
		}
		dir, layer = filepath.Join(a.p.Home, ".synapse", "agents"), agents.LayerUser
	}
	stem := fileStem(name)
	if stem == "" {
		return "", usagef("the name %q holds nothing that a file can be named by", name)
	}
	path := filepath.Join(dir, stem+".md")
	for _, d := range agents.LoadDir(dir, layer, agents.LoadOptions{}).Defs {
		if d.Name == strings.TrimSpace(name) && d.Pos.File != path {
			return "", fmt.Errorf("%s defines %q already; it stays as it is", d.Pos.File, d.Name)
		}
	}
	return path, nil
}

// explainNew says what came of the new definition.
func (a *app) explainNew(h *host.Host, name, path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	d, ok := h.Registry().Get(name)
	switch {
	case !ok:
		fmt.Fprintf(a.p.Stderr, "synapse: warning: settings keep %q from being loaded: see `synapse config show`\n", name)
		return nil
	case d.Pos.File != abs && d.Pos.File != path:
		fmt.Fprintf(a.p.Stderr, "synapse: warning: another definition of %q counts, from a higher layer: %s\n", name, cleanLine(d.Place()))
		return nil
	}
	if shadows := h.Registry().Shadows(name); len(shadows) > 0 {
		fmt.Fprintf(a.p.Stderr, "synapse: it replaces the definition from %s\n", cleanLine(strings.Join(shadows, ", ")))
	}
	e, err := h.Explain(name)
	if err != nil {
		return err
	}
	a.writeExplanation(e)
	return nil
}

// draft makes the text of a definition file, and sees to it that it loads.
func (a *app) draft(name string, n *newAgent, withTools bool) ([]byte, error) {
	prompt := n.prompt
	if prompt == "" && isInput(a.p.Stdin) {
		data, err := io.ReadAll(io.LimitReader(a.p.Stdin, agents.MaxFileSize+1))
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		prompt = strings.TrimSpace(string(data))
	}
	fields := map[string]any{"name": name, "description": n.description, "system_prompt": prompt}
	if n.description == "" {
		fields["description"] = fmt.Sprintf("Use only when %s is asked for by name.", name)
	}
	if prompt == "" {
		about := n.description
		if about == "" {
			about = "Do what the task says."
		}
		fields["system_prompt"] = fmt.Sprintf(`You are %s, a sub-agent.

%s

Work from what you find, not from what you expect. Report what you did and what
you found, with the paths and lines it rests on; say plainly what you could not
do and why.`, name, about)
	}
	if withTools {
		fields["tools"] = splitAll([]string{n.tools})
	}
	if n.model != "" {
		fields["model"] = n.model
	}
	if n.effort != "" {
		fields["reasoning_effort"] = n.effort
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("make agent %q: %w", name, err)
	}
	var d agents.Definition
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, usagef("%v", err)
	}
	text, err := d.Markdown()
	if err != nil {
		return nil, fmt.Errorf("make agent %q: %w", name, err)
	}
	if _, diags := agents.Parse(name, text, agents.ParseOptions{}); agents.HasErrors(diags) {
		return nil, usagef("%s", diags[0].Message)
	}
	return text, nil
}

// fileStem makes a file's name of an agent's, with letters of any script.
func fileStem(name string) string {
	var b strings.Builder
	for _, r := range strings.TrimSpace(name) {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r), r == '_':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-")
}

// writeNew writes a file that is not there yet.
func writeNew(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write the definition: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already; it stays as it is", path)
	}
	if err != nil {
		return fmt.Errorf("write the definition: %w", err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the definition: %w", errors.Join(err, os.Remove(path)))
	}
	return nil
}
