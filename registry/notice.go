package registry

// SetNotice says what all screens should show until it is no longer so, in one
// line without secrets; "" for nothing.
func (r *Registry) SetNotice(text string) {
	text = bounded(text, maxField)
	if old := r.notice.Swap(&text); old == nil && text != "" || old != nil && *old != text {
		r.feed.publish(Servers)
	}
}

// Notice is the text of [Registry.SetNotice].
func (r *Registry) Notice() string {
	if text := r.notice.Load(); text != nil {
		return *text
	}
	return ""
}
