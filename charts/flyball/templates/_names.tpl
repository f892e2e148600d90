{{- /* The release's name, with ours in it. */ -}}
{{- define "flyball.name" -}}
{{- $name := ternary .Release.Name (printf "%s-flyball" .Release.Name) (contains "flyball" .Release.Name) -}}
{{- $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- /* What selectors go by: it must not change between versions. Takes (list root component). */ -}}
{{- define "flyball.selector" -}}
app.kubernetes.io/name: flyball
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- /* On pods. Takes (list root component). */ -}}
{{- define "flyball.podLabels" -}}
{{ include "flyball.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
{{- with (index . 0).Values.global.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* On everything else. Takes (list root component). */ -}}
{{- define "flyball.labels" -}}
{{ include "flyball.podLabels" . }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ (index . 0).Chart.Name }}-{{ (index . 0).Chart.Version }}
{{- end -}}

{{- define "flyball.image" -}}
{{- with .Values.global.imageRegistry }}{{ . }}/{{ end -}}
{{- .Values.image.repository -}}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end -}}
{{- end -}}

{{- /* The service account of a component. Takes (list root component). */ -}}
{{- define "flyball.account" -}}
{{- $account := (index (index . 0).Values (index . 1)).serviceAccount -}}
{{- if $account.name }}{{ $account.name }}{{ else if $account.create }}{{ include "flyball.name" (index . 0) }}-{{ index . 1 }}{{ else }}default{{ end -}}
{{- end -}}

{{- /* The port of IP:PORT. */ -}}
{{- define "flyball.port" -}}
{{- regexFind "[0-9]+$" . -}}
{{- end -}}

{{- /* "yes" if gateways may connect to the operator: those of this release, or others that prove who they are. */ -}}
{{- define "flyball.linked" -}}
{{- $gateways := .Values.operator.config.gateways | default dict -}}
{{- if or .Values.gateway.enabled $gateways.accounts $gateways.ca $gateways.open }}yes{{ end -}}
{{- end -}}

{{- /* The operator's lease. */ -}}
{{- define "flyball.lease" -}}
{{- .Values.operator.config.lease.name | default (printf "%s-operator" (include "flyball.name" .)) -}}
{{- end -}}

{{- /* "yes" if the gateway is told of the operator of this release. */ -}}
{{- define "flyball.gatewayHasOperator" -}}
{{- if and .Values.operator.enabled (not .Values.gateway.config.operator) -}}yes{{- end -}}
{{- end -}}

{{- /* "yes" if the gateway serves what ModelServices offer. */ -}}
{{- define "flyball.gatewayWatches" -}}
{{- if eq (dig "watch" "nothing" (.Values.gateway.config.kubernetes | default dict)) "model-services" -}}yes{{- end -}}
{{- end -}}

{{- /* The namespaces whose ModelServices the gateway serves, as JSON: its own, else those of the operator. None is all. */ -}}
{{- define "flyball.gatewayNamespaces" -}}
{{- dig "namespaces" (list) (.Values.gateway.config.kubernetes | default dict) | default .Values.rbac.namespaces | toJson -}}
{{- end -}}
