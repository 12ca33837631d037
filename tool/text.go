package tool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// encoding is how a text file stores its characters.
type encoding string

const (
	encUTF8    encoding = "UTF-8"
	encUTF16LE encoding = "UTF-16LE"
	encUTF16BE encoding = "UTF-16BE"
	// enc1252 stands for every 8-bit encoding: each byte is one character, so
	// that a file in another of them still survives an edit byte by byte.
	enc1252 encoding = "windows-1252"
)

// A text is a file's content as characters, with what it takes to write it
// back the way it was.
type text struct {
	s    string
	enc  encoding
	bom  bool
	crlf bool // most lines end in CRLF
}

var errBinary = errors.New("a binary file")

// maxText bounds the files that are taken into memory whole.
const maxText = 64 << 20

// decode turns a file's bytes into text. Its error is errBinary when they are
// no text.
func decode(b []byte) (text, error) {
	t := text{enc: encUTF8}
	switch {
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		t.bom, b = true, b[3:]
	case bytes.HasPrefix(b, []byte("\xff\xfe")):
		t.bom, t.enc, b = true, encUTF16LE, b[2:]
	case bytes.HasPrefix(b, []byte("\xfe\xff")):
		t.bom, t.enc, b = true, encUTF16BE, b[2:]
	default:
		t.enc = guess(b)
	}
	switch t.enc {
	case encUTF16LE, encUTF16BE:
		if len(b)%2 != 0 {
			return text{}, errBinary
		}
		t.s = decode16(b, t.enc)
	case enc1252:
		var sb strings.Builder
		sb.Grow(len(b) + len(b)/8)
		for _, c := range b {
			sb.WriteRune(from1252(c))
		}
		t.s = sb.String()
	case "":
		return text{}, errBinary
	default:
		if looksBinary(b) {
			return text{}, errBinary
		}
		t.s = string(b)
	}
	crlf := strings.Count(t.s, "\r\n")
	t.crlf = crlf > 0 && crlf*2 >= strings.Count(t.s, "\n")
	return t, nil
}

// guess tells the encoding of bytes without a mark, "" for binary.
func guess(b []byte) encoding {
	if enc := guess16(b); enc != "" {
		return enc
	}
	if looksBinary(b) {
		return ""
	}
	if utf8.Valid(b) {
		return encUTF8
	}
	// A few broken bytes in a UTF-8 file (a log cut in the middle of a
	// character) don't make it another encoding: the bytes stay as they are.
	var good, bad int
	for rest := b; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && n == 1:
			bad++
		case n > 1:
			good++
		}
		rest = rest[n:]
	}
	if good >= bad {
		return encUTF8
	}
	return enc1252
}

// guess16 recognises UTF-16 without a mark by the zero bytes of its ASCII half.
func guess16(b []byte) encoding {
	head := b[:min(len(b), 1024)&^1]
	if len(head) < 4 || len(b)%2 != 0 {
		return ""
	}
	var even, odd int
	for i := 0; i < len(head); i += 2 {
		if head[i] == 0 {
			even++
		}
		if head[i+1] == 0 {
			odd++
		}
	}
	switch half := len(head) / 2; {
	case even == 0 && odd*10 >= half*7:
		return encUTF16LE
	case odd == 0 && even*10 >= half*7:
		return encUTF16BE
	}
	return ""
}

// sniffLen is how much of a file is looked at to tell text from binary.
const sniffLen = 8192

// looksBinary reports whether bytes hold a NUL or mostly control characters
// near their start.
func looksBinary(b []byte) bool {
	head := b[:min(len(b), sniffLen)]
	if bytes.IndexByte(head, 0) >= 0 {
		return true
	}
	control := 0
	for _, c := range head {
		if c < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != '\b' && c != 0x1b {
			control++
		}
	}
	return control*10 > len(head)
}

func decode16(b []byte, enc encoding) string {
	order := byteOrder(enc)
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = order.Uint16(b[2*i:])
	}
	return string(utf16.Decode(units))
}

func byteOrder(enc encoding) interface {
	binary.ByteOrder
	binary.AppendByteOrder
} {
	if enc == encUTF16BE {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// encode returns s in t's encoding, with its mark. It fails when the encoding
// has no byte for a character.
func (t text) encode(s string) ([]byte, error) {
	switch t.enc {
	case encUTF16LE, encUTF16BE:
		order := byteOrder(t.enc)
		out := make([]byte, 0, 2*len(s)+2)
		if t.bom {
			out = order.AppendUint16(out, 0xfeff)
		}
		for _, u := range utf16.Encode([]rune(s)) {
			out = order.AppendUint16(out, u)
		}
		return out, nil
	case enc1252:
		out := make([]byte, 0, len(s))
		for _, r := range s {
			c, ok := to1252(r)
			if !ok {
				return nil, fmt.Errorf("the file is in an 8-bit encoding (read as %s), which has no %q", t.enc, r)
			}
			out = append(out, c)
		}
		return out, nil
	default:
		if t.bom {
			return append([]byte("\xef\xbb\xbf"), s...), nil
		}
		return []byte(s), nil
	}
}

// unlike says how a file differs from plain UTF-8 with LF, "" when it doesn't.
func (t text) unlike() string {
	var notes []string
	if t.enc != encUTF8 {
		notes = append(notes, string(t.enc))
	} else if t.bom {
		notes = append(notes, "BOM")
	}
	if t.crlf {
		notes = append(notes, "CRLF")
	}
	return strings.Join(notes, ", ")
}

// table1252 holds the characters of bytes 0x80 to 0x9f, where windows-1252
// departs from Latin-1; the bytes it leaves undefined stand for themselves.
var table1252 = [32]rune{
	'€', 0x81, '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', 0x8d, 'Ž', 0x8f,
	0x90, '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', 0x9d, 'ž', 'Ÿ',
}

func from1252(c byte) rune {
	if c >= 0x80 && c < 0xa0 {
		return table1252[c-0x80]
	}
	return rune(c)
}

func to1252(r rune) (byte, bool) {
	if r < 0x80 || r >= 0xa0 && r <= 0xff {
		return byte(r), true
	}
	for i, t := range table1252 {
		if t == r {
			return byte(0x80 + i), true
		}
	}
	return 0, false
}

// sniff names the type of a binary file by its first bytes.
func sniff(b []byte) string {
	for _, m := range []struct {
		at    int
		magic string
		mime  string
	}{
		{0, "\x89PNG\r\n\x1a\n", "image/png"},
		{0, "\xff\xd8\xff", "image/jpeg"},
		{0, "GIF87a", "image/gif"},
		{0, "GIF89a", "image/gif"},
		{8, "WEBP", "image/webp"},
		{0, "%PDF-", "application/pdf"},
		{0, "PK\x03\x04", "application/zip"},
		{0, "\x1f\x8b", "application/gzip"},
		{0, "BZh", "application/x-bzip2"},
		{0, "\xfd7zXZ\x00", "application/x-xz"},
		{0, "\x28\xb5\x2f\xfd", "application/zstd"},
		{0, "7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"},
		{257, "ustar", "application/x-tar"},
		{0, "\x7fELF", "an ELF executable"},
		{0, "MZ", "a Windows executable"},
		{0, "\xcf\xfa\xed\xfe", "a Mach-O executable"},
		{0, "\xca\xfe\xba\xbe", "a Java class or Mach-O executable"},
		{0, "\x00asm", "application/wasm"},
		{0, "SQLite format 3\x00", "an SQLite database"},
		{4, "ftyp", "video/mp4"},
		{0, "OggS", "audio/ogg"},
		{0, "ID3", "audio/mpeg"},
		{0, "BM", "image/bmp"},
		{0, "\x00\x00\x01\x00", "image/x-icon"},
	} {
		if len(b) >= m.at+len(m.magic) && string(b[m.at:m.at+len(m.magic)]) == m.magic {
			return m.mime
		}
	}
	return "of unknown type"
}

// readUpTo reads r, whose size is about size, and fails when it has more than
// limit bytes: a file may grow while it is read.
func readUpTo(r io.Reader, size, limit int64) ([]byte, error) {
	buf := bytes.NewBuffer(make([]byte, 0, min(size, limit)+bytes.MinRead))
	n, err := buf.ReadFrom(io.LimitReader(r, limit+1))
	if err == nil && n > limit {
		err = fmt.Errorf("grew over %s while it was read", bytesText(limit))
	}
	return buf.Bytes(), err
}

// bytesText writes a size for people: "512 bytes", "1.5 MB".
func bytesText(n int64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 10_000:
		return fmt.Sprintf("%d bytes", n)
	case n < 10_000_000:
		return fmt.Sprintf("%.1f KB", float64(n)/1e3)
	default:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
}

// count writes a number with its noun: "1 file", "3 files".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if rest, ok := strings.CutSuffix(noun, "y"); ok {
		return fmt.Sprintf("%d %sies", n, rest)
	}
	if strings.HasSuffix(noun, "ch") {
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// cut shortens s to at most max bytes at a character's boundary.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}

// splitLines returns the lines of s without their ends; a last line end opens
// no further line.
func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSuffix(l, "\r")
	}
	return lines
}
