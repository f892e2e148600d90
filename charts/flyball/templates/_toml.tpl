{{- /*
A map as TOML. Takes a dict: `map`, and `path`, the section that it is (empty at the top).

Helm's own toToml writes whole numbers from values files as floating point numbers, which a typed
setting refuses. All numbers among the settings are whole.
What is empty is left out, and counts as not said.
*/ -}}
{{- define "flyball.toml" -}}
{{- $path := .path -}}
{{- range $key, $value := .map -}}
{{- if not (or (kindIs "invalid" $value) (kindIs "map" $value) (eq (include "flyball.toml.isSections" $value) "yes") (and (kindIs "slice" $value) (empty $value))) }}
{{ $key }} = {{ include "flyball.toml.value" $value }}
{{- end -}}
{{- end -}}
{{- range $key, $value := .map -}}
{{- $inner := ternary $key (printf "%s.%s" $path $key) (empty $path) -}}
{{- if and (kindIs "map" $value) (not (empty $value)) }}

[{{ $inner }}]
{{- include "flyball.toml" (dict "map" $value "path" $inner) -}}
{{- else if eq (include "flyball.toml.isSections" $value) "yes" -}}
{{- range $value }}

[[{{ $inner }}]]
{{- include "flyball.toml" (dict "map" . "path" $inner) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* "yes" for a list of maps. */ -}}
{{- define "flyball.toml.isSections" -}}
{{- if kindIs "slice" . -}}{{- if not (empty .) -}}{{- if kindIs "map" (first .) -}}yes{{- end -}}{{- end -}}{{- end -}}
{{- end -}}

{{- define "flyball.toml.value" -}}
{{- if typeIs "string" . -}}
{{ toJson . }}
{{- else if kindIs "bool" . -}}
{{ . }}
{{- else if kindIs "slice" . -}}
[{{ range $index, $item := . }}{{ if $index }}, {{ end }}{{ include "flyball.toml.value" $item }}{{ end }}]
{{- else -}}
{{ int64 . }}
{{- end -}}
{{- end -}}
