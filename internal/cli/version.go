package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// buildVersion is `version --json`.
type buildVersion struct {
	Version  string `json:"version"`  // the module's, "(devel)" for a build from a checkout
	Revision string `json:"revision"` // of the checkout, "" where it is not known
	Time     string `json:"time"`     // of the revision
	Modified bool   `json:"modified"` // the checkout had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func readVersion() buildVersion {
	v := buildVersion{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (v buildVersion) String() string {
	s := "synapse " + v.Version
	if v.Revision != "" {
		s += fmt.Sprintf(" (%.12s", v.Revision)
		if v.Modified {
			s += ", changed"
		}
		s += ")"
	}
	return s + " " + v.Go + " " + v.Platform
}

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			v := readVersion()
			if asJSON {
				return printJSON(a.p.Stdout, v)
			}
			_, err := fmt.Fprintln(a.p.Stdout, v)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}
