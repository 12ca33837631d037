package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/host"
	"github.com/synapse-agents/synapse/internal/settings"
	"github.com/synapse-agents/synapse/model/remote"
	"github.com/synapse-agents/synapse/model/replay"
	"github.com/synapse-agents/synapse/model/script"
	"github.com/synapse-agents/synapse/trace"
)

// A tape is what `run` keeps of a request, or plays.
type tape struct {
	record, replay string // files
	ignore         []string
}

func (t *tape) register(c *cobra.Command) {
	c.Flags().StringVar(&t.record, "record", "", "keep what the models answer in this `file`")
	c.Flags().StringVar(&t.replay, "replay", "", "run what was recorded in this `file` again, without a model")
	c.Flags().StringArrayVar(&t.ignore, "replay-ignore", nil, "do not compare `WHAT`: dates, results (of tools), or /REGEXP/; again for more")
	c.RegisterFlagCompletionFunc("replay-ignore", oneOf("dates", "results"))
}

// runTaped answers one prompt, as the tape says.
func (a *app) runTaped(ctx context.Context, args []string, t *tape) error {
	ignore, err := replay.ParseIgnore(t.ignore)
	switch {
	case t.record != "" && t.replay != "":
		return usagef("--record and --replay don't go together")
	case (t.record != "" || t.replay != "") && a.flags.earlier():
		return usagef("--record and --replay are for a request of its own: not with --resume or --continue")
	case err != nil:
		return usagef("--replay-ignore: %v", err)
	case len(t.ignore) > 0 && t.replay == "":
		return usagef("--replay-ignore goes with --replay")
	case t.record != "":
		return a.recordRun(ctx, args, t.record)
	case t.replay != "":
		return a.replayRun(ctx, args, t.replay, ignore)
	}
	return a.run(ctx, args)
}

// recordRun answers one prompt and keeps what the models answered.
func (a *app) recordRun(ctx context.Context, args []string, file string) error {
	if err := replaceable(file); err != nil {
		return err
	}
	prompt, err := a.prompt(ctx, args, false)
	if err != nil {
		return err
	}
	opt, err := a.tapeOptions()
	if err != nil {
		return err
	}
	rec := replay.NewRecorder(prompt, opt)
	out, err := a.answer(ctx, host.Input{Prompt: prompt}, func(o *host.Options) { o.Intercept = rec.Intercept })
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		fmt.Fprintf(a.p.Stderr, "synapse: %s was not written: the request was interrupted\n", cleanLine(file))
		return a.ended(out)
	}
	recording, err := rec.Recording()
	if err == nil {
		err = writeRecording(file, recording)
	}
	if err != nil {
		return fmt.Errorf("--record %s: %w", file, err)
	}
	fmt.Fprintf(a.p.Stderr, "synapse: recorded %s in %s\n", count(int64(len(recording.Turns)), "request"), cleanLine(file))
	return a.ended(out)
}

// replayRun plays what was recorded.
func (a *app) replayRun(ctx context.Context, args []string, file string, ignore replay.Ignore) error {
	recording, err := readRecording(file)
	if err != nil {
		return configErrorf("--replay %s: %w", file, err)
	}
	opt, err := a.tapeOptions()
	if err != nil {
		return err
	}
	opt.Ignore = ignore
	// A request of another prompt is a difference like any other.
	prompt := strings.ReplaceAll(recording.Prompt, replay.WorkspaceWord, opt.Workspace[0])
	if len(args) > 0 {
		prompt = strings.Join(args, " ")
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	player := replay.NewPlayer(recording, opt, stop)
	out, err := a.answer(ctx, host.Input{Prompt: prompt, Trace: recording.Trace}, func(o *host.Options) {
		o.Intercept, o.DefaultModel, o.Journal = player.Intercept, recording.Model, &trace.Memory{}
		o.Models = map[string]synapse.Model{} // nobody is asked, so nobody needs a key
		for _, p := range remote.Providers() {
			o.Models[p.Name] = script.New()
		}
		for _, s := range recording.Specs {
			if ref, err := synapse.ParseModelRef(s.Model); err == nil {
				o.Models[ref.Provider] = script.New()
			}
		}
	})
	if err != nil {
		return err
	}
	if d := player.Finish(); d != nil {
		fmt.Fprintln(a.p.Stderr, "synapse:", clean(d.Error()))
		return &codedError{code: exitDiffers, err: d, quiet: true}
	}
	fmt.Fprintf(a.p.Stderr, "synapse: the replay asked just what was recorded: %s\n", count(int64(len(recording.Turns)), "request"))
	return a.ended(out)
}

// answer runs one request and prints its answer.
func (a *app) answer(ctx context.Context, in host.Input, edit func(*host.Options)) (synapse.Outcome, error) {
	view := a.newView()
	h, err := a.open(ctx, func(o *host.Options) { o.SeedAgents, o.Ask = true, view.asker() }, edit)
	if err != nil {
		return synapse.Outcome{}, err
	}
	defer h.Close()
	a.sayModel(h)
	return a.follow(view, h.Run(ctx, in))
}

// secretName matches the names of variables that hold secrets.
var secretName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)KEY|TOKEN|SECRET|PASSW|CREDENTIAL`) })

// tapeOptions says what is written in other words: the workspace's path, and every
// value that the environment and the settings know to be a secret.
func (a *app) tapeOptions() (replay.Options, error) {
	root, err := filepath.Abs(a.flags.workspace)
	if err != nil {
		return replay.Options{}, fmt.Errorf("find the workspace: %w", err)
	}
	opt := replay.Options{Workspace: []string{root}, Secrets: map[string]string{}}
	if real, err := filepath.EvalSymlinks(root); err == nil && real != root {
		opt.Workspace = append(opt.Workspace, real)
	}
	for _, e := range a.p.Environ {
		if name, value, ok := strings.Cut(e, "="); ok && secretName().MatchString(name) && !filepath.IsAbs(value) {
			opt.Secrets[name] = value
		}
	}
	src, err := a.sources()
	if err != nil {
		return opt, err
	}
	set, _, err := settings.Load(src)
	if err != nil {
		return opt, err
	}
	for _, v := range settings.ProviderVars() {
		if secret, ok := set.Secrets.Get(v.Name); ok && v.Secret {
			opt.Secrets[v.Name] = secret.Reveal()
		}
	}
	for _, p := range set.Providers {
		if secret, ok := set.Secrets.Get(p.V.APIKeyEnv); ok && p.V.APIKeyEnv != "" {
			opt.Secrets[p.V.APIKeyEnv] = secret.Reveal()
		}
	}
	return opt, nil
}

func readRecording(file string) (*replay.Recording, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return replay.Read(f)
}

// replaceable refuses to write over a file that is no recording.
func replaceable(file string) error {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (len(data) == 0 || strings.HasPrefix(string(data), `{"format":"`+replay.Format+`"`)) {
		return nil
	}
	if err != nil {
		return usagef("--record: %v", err)
	}
	return usagef("--record %s: the file is there and is no recording: name another", file)
}

// writeRecording writes a recording whole, or leaves what was there.
func writeRecording(file string, r *replay.Recording) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".recording-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	err = errors.Join(r.Write(tmp), tmp.Chmod(0o644), tmp.Close())
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}
