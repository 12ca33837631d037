package agents

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An UnknownProductError says that a list of products names one that there is
// not.
type UnknownProductError struct {
	Name  string
	Known []string
}

// Error names the product, the one that was likely meant, and all there are.
func (e *UnknownProductError) Error() string {
	hint := ""
	if s := nearest(strings.ToLower(e.Name), e.Known); s != "" {
		hint = fmt.Sprintf("; did you mean %q?", s)
	}
	return fmt.Sprintf("there is no product %q whose agents could be read%s There are %s", e.Name, cmpText(hint, "."), strings.Join(e.Known, ", "))
}

// CheckProducts returns an *[UnknownProductError] for the first of the names
// that is no product's.
func CheckProducts(names []string) error {
	known := ProductNames()
	for _, name := range names {
		if !slices.Contains(known, name) {
			return &UnknownProductError{name, known}
		}
	}
	return nil
}

// ImportLayers reads the definitions of other products below a directory: the
// home directory with [LayerHome], a workspace with [LayerWorkspace]. Those of
// the products of those names are read, with nil of all. The layers come low to
// high: of two products on a level the one that comes first in [Products] wins,
// and of a product's places the first. A place that does not exist has no
// layer.
func ImportLayers(level LayerKind, dir string, names []string, opt LoadOptions) []Layer {
	var layers []Layer
	for _, p := range slices.Backward(products) {
		if names != nil && !slices.Contains(names, p.Name) {
			continue
		}
		own := opt
		own.Origin, own.StemName = p.Name, true
		for _, place := range slices.Backward(p.Places) {
			if place.Level != level {
				continue
			}
			at := filepath.Join(dir, filepath.FromSlash(place.Path))
			opt.note(at)
			if _, err := os.Lstat(at); err != nil {
				continue
			}
			if place.isFile() {
				layers = append(layers, LoadFile(at, level, own))
				continue
			}
			layers = append(layers, LoadDir(at, level, own))
		}
	}
	return layers
}

// pathName is a file's path below its place without the ending, which is the
// name of an agent that has none for some products.
func (p *product) pathName(file string) string {
	file = filepath.ToSlash(file)
	best := ""
	for _, place := range p.Places {
		if i := strings.LastIndex("/"+file, "/"+place.Path+"/"); i >= 0 && !place.isFile() {
			if rest := ("/" + file)[i+len(place.Path)+2:]; best == "" || len(rest) < len(best) {
				best = rest
			}
		}
	}
	if best == "" {
		return ""
	}
	return strings.TrimSuffix(best, filepath.Ext(best))
}

// QualifiedName is the name under which the definition can be reached even
// where one of another product has its plain name: "claude:reviewer". A native
// definition has none but its own.
func (d *Definition) QualifiedName() string {
	if findProduct(d.Origin) == nil || strings.HasPrefix(d.Name, d.Origin+":") {
		return d.Name
	}
	return d.Origin + ":" + d.Name
}
