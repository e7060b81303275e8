package export
import "io"
func writeHTML(k *walker, w io.Writer) error { return nil }
