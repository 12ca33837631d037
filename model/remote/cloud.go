package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	synapse "github.com/synapse-agents/synapse"
)

// placeName is what a region or a location looks like. It becomes a part of a
// host's name, so nothing else may be in it.
var placeName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z]+(-[a-z]+)*-?[0-9]*$`) })

// cloudBase returns the base URL that a cloud's region makes, empty for what is
// no cloud of regions.
func (m *model) cloudBase() (string, error) {
	region := m.cloud.Region
	if region != "" && !placeName().MatchString(region) {
		return "", fmt.Errorf("region %q: want one such as us-east-1 or europe-west4", region)
	}
	switch m.row.Name {
	case "azure":
		return "", errors.New("no endpoint; set AZURE_OPENAI_ENDPOINT to https://RESOURCE.openai.azure.com")
	case "bedrock":
		if region == "" {
			return "", errors.New("no region; set AWS_REGION, for example to us-east-1")
		}
		return "https://bedrock-runtime." + region + ".amazonaws.com", nil
	case "vertex":
		switch region {
		case "", "global":
			return "https://aiplatform.googleapis.com", nil
		case "us", "eu":
			return "https://aiplatform." + region + ".rep.googleapis.com", nil
		}
		return "https://" + region + "-aiplatform.googleapis.com", nil
	}
	return "", nil
}

// setUpCloud checks what a cloud needs beside an address.
func (m *model) setUpCloud() error {
	switch m.row.Name {
	case "azure":
		if m.key == "" && !loopback(hostOf(m.base)) {
			return errors.New("no API key; set AZURE_OPENAI_API_KEY")
		}
	case "bedrock":
		keys := m.cloud.AWS
		switch {
		case m.key != "": // the address says the region
		case m.cloud.Region == "":
			return errors.New("no region; set AWS_REGION, for example to us-east-1")
		case keys.AccessKeyID == "" || keys.SecretAccessKey == "":
			return errors.New("no credentials; set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (single sign-on: `aws configure export-credentials --format env` prints them)")
		}
	case "vertex":
		if m.cloud.Project == "" {
			return errors.New("no project; set GOOGLE_CLOUD_PROJECT")
		}
		if m.key == "" {
			if len(m.cloud.GoogleCredentials) == 0 {
				return errors.New("no credentials; run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to a service account's file")
			}
			token, err := newGoogleToken(m.cloud.GoogleCredentials, m.client)
			if err != nil {
				return err
			}
			m.google = token
		}
	}
	return nil
}

func hostOf(base string) string {
	u, err := url.Parse(base)
	if err != nil { // it was parsed before
		return ""
	}
	return u.Hostname()
}

// azureEndpoint returns the v1 API's address, or with a dated version that of
// the older one, in which the model is a deployment.
func (m *model) azureEndpoint(name string, wire Wire) string {
	last := map[Wire]string{WireResponses: "/responses"}[wire]
	if last == "" {
		last = "/chat/completions"
	}
	root := strings.TrimSuffix(strings.TrimSuffix(m.base, "/openai/v1"), "/openai") + "/openai"
	switch version := m.cloud.APIVersion; {
	case version == "" || version == "v1":
		return root + "/v1" + last
	case version == "preview" || version == "latest":
		return root + "/v1" + last + "?api-version=" + version
	case wire == WireResponses:
		return root + last + "?api-version=" + url.QueryEscape(version)
	default:
		return root + "/deployments/" + url.PathEscape(name) + last + "?api-version=" + url.QueryEscape(version)
	}
}

// vertexEndpoint returns the address of a publisher's model in a project.
func (m *model) vertexEndpoint(name string, wire Wire) string {
	location := m.cloud.Region
	if location == "" {
		location = "global"
	}
	publisher, verb := "google", ":streamGenerateContent?alt=sse"
	if wire == WireAnthropic {
		publisher, verb = "anthropic", ":streamRawPredict"
	}
	return fmt.Sprintf("%s/projects/%s/locations/%s/publishers/%s/models/%s%s", m.versioned("v1"),
		url.PathEscape(m.cloud.Project), url.PathEscape(location), publisher, url.PathEscape(name), verb)
}

// authorize adds to a request what depends on the request or on the time. It
// comes last: a signature covers every header.
func (m *model) authorize(ctx context.Context, req *http.Request, body []byte) *synapse.ProviderError {
	switch {
	case m.row.Name == "bedrock":
		req.Header.Set("Accept", amazonStream)
		if m.key == "" {
			return m.signAWS(ctx, req, body)
		}
	case m.google != nil:
		token, fault := m.google.get(ctx)
		if fault != nil {
			return fault
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return nil
}
