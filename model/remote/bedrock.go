package remote

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	synapse "github.com/synapse-agents/synapse"
)

// amazonStream is the type of an answer in Amazon's binary framing.
const amazonStream = "application/vnd.amazon.eventstream"

// claudeOnBedrock refuses models whose format is another one.
func claudeOnBedrock(name string) error {
	if strings.Contains(name, "claude") || strings.HasPrefix(name, "arn:") {
		return nil
	}
	return fmt.Errorf("model %s: only Claude is asked over Bedrock's own format; reach other models over its OpenAI-compatible endpoint, "+
		`with the setting providers: {"bedrock-openai": {"base_url": "https://bedrock-runtime.REGION.amazonaws.com/openai/v1", "api_key_env": "AWS_BEARER_TOKEN_BEDROCK"}}`, name)
}

func (m *model) bedrockEndpoint(name string) string {
	// The colon of a model's id is escaped as Amazon signs it.
	return m.base + "/model/" + strings.ReplaceAll(url.PathEscape(name), ":", "%3A") + "/invoke-with-response-stream"
}

func (m *model) signAWS(ctx context.Context, req *http.Request, body []byte) *synapse.ProviderError {
	keys := aws.Credentials{
		AccessKeyID: m.cloud.AWS.AccessKeyID, SecretAccessKey: m.cloud.AWS.SecretAccessKey, SessionToken: m.cloud.AWS.SessionToken,
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(ctx, keys, req, hex.EncodeToString(sum[:]), "bedrock", m.cloud.Region, time.Now()); err != nil {
		return &synapse.ProviderError{Kind: synapse.ErrorAuth, Message: "sign the request: " + oneLine(err.Error()), Err: err}
	}
	return nil
}

// frameReader reads events in Amazon's framing: each frame holds one event of
// the format within, or says what went wrong.
type frameReader struct {
	src     *bufio.Reader
	decoder *eventstream.Decoder
	buf     []byte
}

func (r *frameReader) event() (name string, data []byte, err error) {
	if _, err := r.src.Peek(1); err != nil {
		return "", nil, err // io.EOF between frames
	}
	if head, err := r.src.Peek(4); err == nil {
		size := int64(head[0])<<24 | int64(head[1])<<16 | int64(head[2])<<8 | int64(head[3])
		if size > maxEvent {
			return "", nil, errEventTooLong
		}
	}
	if r.decoder == nil {
		r.decoder = eventstream.NewDecoder()
	}
	msg, err := r.decoder.Decode(r.src, r.buf[:0])
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return "", nil, err
	}
	text := func(name string) string {
		if v, ok := msg.Headers.Get(name).(eventstream.StringValue); ok {
			return string(v)
		}
		return ""
	}
	switch text(":message-type") {
	case "exception", "error":
		kind := text(":exception-type")
		if kind == "" {
			kind = text(":error-code")
		}
		return "error", amazonError(kind, text(":error-message"), msg.Payload), nil
	}
	var chunk struct {
		Bytes []byte `json:"bytes"`
	}
	if err := json.Unmarshal(msg.Payload, &chunk); err != nil {
		return "", msg.Payload, nil // what it is not, the stream will say
	}
	return "", chunk.Bytes, nil
}

// amazonError writes an exception as the error that it is in other formats.
func amazonError(kind, message string, payload []byte) []byte {
	var body struct {
		Message string `json:"message"`
		Status  int    `json:"originalStatusCode"`
	}
	_ = json.Unmarshal(payload, &body) // without a message, its type has to do
	if body.Message != "" {
		message = body.Message
	}
	data, _ := marshal(map[string]any{"error": map[string]any{"type": amazonWord(kind), "message": message, "status": body.Status}}) // strings always marshal
	return data
}

// amazonWord writes the name of an exception as other providers write theirs:
// throttlingException becomes throttling_exception.
func amazonWord(name string) string {
	name, _, _ = strings.Cut(name, ":") // a URL may follow
	var b strings.Builder
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}
