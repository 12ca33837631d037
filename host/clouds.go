package host

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/synapse-agents/synapse/internal/settings"
	"github.com/synapse-agents/synapse/model/remote"
)

// cloud collects what a large cloud takes beside a key. Files are read below
// the home directory that the host was given, and nowhere else.
func (m *models) cloud(set *settings.Settings, provider string) (remote.Cloud, error) {
	secret := func(name string) string {
		s, _ := set.Secrets.Get(name)
		return s.Reveal()
	}
	var c remote.Cloud
	switch provider {
	case "azure":
		c.APIVersion = secret("AZURE_OPENAI_API_VERSION")
	case "bedrock":
		c.Region = secret("AWS_REGION")
		c.AWS = remote.AWSKeys{AccessKeyID: secret("AWS_ACCESS_KEY_ID"), SecretAccessKey: secret("AWS_SECRET_ACCESS_KEY"), SessionToken: secret("AWS_SESSION_TOKEN")}
		if m.home == "" || c.Region != "" && (c.AWS.AccessKeyID != "" || secret("AWS_BEARER_TOKEN_BEDROCK") != "") {
			return c, nil
		}
		profile := secret("AWS_PROFILE")
		found, err := awsProfile(filepath.Join(m.home, ".aws"), profile)
		if err != nil {
			return c, err
		}
		if c.Region == "" {
			c.Region = found["region"]
		}
		if c.AWS.AccessKeyID == "" && found["aws_access_key_id"] != "" {
			c.AWS = remote.AWSKeys{AccessKeyID: found["aws_access_key_id"], SecretAccessKey: found["aws_secret_access_key"], SessionToken: found["aws_session_token"]}
		}
		if c.AWS.AccessKeyID == "" && secret("AWS_BEARER_TOKEN_BEDROCK") == "" {
			for _, key := range []string{"sso_session", "sso_start_url", "role_arn", "credential_process", "login_session"} {
				if found[key] != "" {
					return c, fmt.Errorf("the AWS profile %q gets its keys by %s, which this program does not do: put temporary ones into the environment with `aws configure export-credentials --profile %s --format env`", profileName(profile), key, profileName(profile))
				}
			}
		}
	case "vertex":
		c.Project, c.Region = secret("GOOGLE_CLOUD_PROJECT"), secret("GOOGLE_CLOUD_LOCATION")
		file := secret("GOOGLE_APPLICATION_CREDENTIALS")
		if file == "" {
			if m.home == "" {
				return c, nil
			}
			file = filepath.Join(m.home, ".config", "gcloud", "application_default_credentials.json")
			data, err := os.ReadFile(file)
			if errors.Is(err, fs.ErrNotExist) {
				return c, nil // what is missing is said where it is needed
			}
			c.GoogleCredentials = data
			return c, err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return c, fmt.Errorf("GOOGLE_APPLICATION_CREDENTIALS: %w", err)
		}
		c.GoogleCredentials = data
	}
	return c, nil
}

func profileName(profile string) string {
	if profile == "" {
		return "default"
	}
	return profile
}

// awsProfile reads a profile of Amazon's two files. One that was asked for by
// name has to be there.
func awsProfile(dir, profile string) (map[string]string, error) {
	name := profileName(profile)
	values, found := map[string]string{}, false
	for _, place := range []struct{ file, section string }{
		{"config", "profile " + name}, {"config", name}, {"credentials", name},
	} {
		if place.section == "profile default" || place.file == "config" && place.section == name && name != "default" {
			continue // the default profile is written without the word there
		}
		section, err := iniSection(filepath.Join(dir, place.file), place.section)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		found = found || section != nil
		for key, value := range section {
			values[key] = value
		}
	}
	if !found && profile != "" {
		return nil, fmt.Errorf("AWS_PROFILE: there is no profile %q in %s or %s", profile, filepath.Join(dir, "config"), filepath.Join(dir, "credentials"))
	}
	return values, nil
}

// iniSection reads one section of a file of "key = value" lines, nil where it
// has none of that name.
func iniSection(file, name string) (map[string]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var section map[string]string
	inside := false
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if title, ok := strings.CutPrefix(line, "["); ok {
			title, _, _ = strings.Cut(title, "]")
			if inside = strings.Join(strings.Fields(title), " ") == name; inside && section == nil {
				section = map[string]string{}
			}
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if inside && ok && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ";") {
			section[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
		}
	}
	return section, lines.Err()
}
