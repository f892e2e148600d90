{{- /* What every pod of ours is: restricted, whatever the namespace asks for. */ -}}
{{- define "flyball.podSecurity" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "flyball.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end -}}

{{- define "flyball.imageOfContainer" -}}
image: {{ include "flyball.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end -}}

{{- define "flyball.pullSecrets" -}}
{{- with .Values.global.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* What says where pods go. Takes (list root component). */ -}}
{{- define "flyball.placement" -}}
{{- $selector := include "flyball.selector" . | fromYaml -}}
{{- with index (index . 0).Values (index . 1) }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range . }}
  {{- $constraint := deepCopy . }}
  {{- if not (hasKey . "labelSelector") }}
  {{- $_ := set $constraint "labelSelector" (dict "matchLabels" $selector) }}
  {{- end }}
  {{- list $constraint | toYaml | nindent 2 }}
  {{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Environment of a component's container. Takes its values. */ -}}
{{- define "flyball.environment" -}}
env:
  - { name: FLYBALL_LOG_FORMAT, value: {{ .log.format }} }
  {{- with .log.filter }}
  - { name: FLYBALL_LOG, value: {{ . | quote }} }
  {{- end }}
  {{- with .extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "flyball.probes" -}}
startupProbe:
  httpGet: { path: /healthz, port: admin }
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: { path: /healthz, port: admin }
  periodSeconds: 10
  timeoutSeconds: 5
readinessProbe:
  httpGet: { path: /readyz, port: admin }
  periodSeconds: 2
  timeoutSeconds: 2
{{- end -}}

{{- /* ServiceAccount and PodDisruptionBudget of a component. Takes (list root component). */ -}}
{{- define "flyball.belongings" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $values := index $root.Values $component -}}
{{- if $values.serviceAccount.create }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "flyball.account" . }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "flyball.labels" . | nindent 4 }}
  {{- with $values.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
# The pods that need a token say so.
automountServiceAccountToken: false
{{- end }}
{{- if $values.podDisruptionBudget.enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "flyball.name" $root }}-{{ $component }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "flyball.labels" . | nindent 4 }}
spec:
  maxUnavailable: {{ $values.podDisruptionBudget.maxUnavailable }}
  # A pod that is not ready anyway does not hold up a drain.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "flyball.selector" . | nindent 6 }}
{{- end }}
{{- end -}}
