{{- /*
What the operator may do in the namespaces that it works in. Each verb has its reason; `cargo xtask
charts` holds that it has one.
*/ -}}
{{- define "flyball.operatorRules" -}}
# list: all at the start; watch: changes.
- apiGroups: [flyball.dev]
  resources: [modelservices]
  verbs: [list, watch]
# patch: what was decided and why, and how far it is.
- apiGroups: [flyball.dev]
  resources: [modelservices/status]
  verbs: [patch]
{{- include "flyball.tenantRules" . | nindent 0 }}
# patch: whether its keys are accepted, and what is left of its budgets.
- apiGroups: [flyball.dev]
  resources: [tenants/status]
  verbs: [patch]
# list: all at the start; watch: changes.
- apiGroups: [flyball.dev]
  resources: [trainingruns]
  verbs: [list, watch]
# patch: how far it is, what it costs, and where it should be.
- apiGroups: [flyball.dev]
  resources: [trainingruns/status]
  verbs: [patch]
# list: all at the start; watch: what a TrainingRun names, that it runs, waits or has ended.
- apiGroups: [jobset.x-k8s.io]
  resources: [jobsets]
  verbs: [list, watch]
# list, watch: the same for Jobs of Kubernetes.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [list, watch]
# list, watch: the same for Kubeflow Trainer.
- apiGroups: [trainer.kubeflow.org]
  resources: [trainjobs]
  verbs: [list, watch]
# list, watch: whether Kueue has admitted it, and whether it took its machines away.
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads]
  verbs: [list, watch]
{{- if .Values.rbac.runLogs }}
# get: heartbeats in the log of a run, where its TrainingRun says `heartbeat: Log`.
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
{{- end }}
# get: asked for by `flyball check`, and no more than a list; list: all at the start; watch: replicas that
# come, get ready and go.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch]
# get: asked for by `flyball check`; list: all at the start; watch: replicas of what a ModelService names.
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch]
# list, watch: the same.
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [list, watch]
# list, watch: the same for replicas of several pods.
- apiGroups: [leaderworkerset.x-k8s.io]
  resources: [leaderworkersets]
  verbs: [list, watch]
# list: all at the start; watch: who else scales what it scales.
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [list, watch]
# create: decisions, as `kubectl get events` shows them; patch: the same one again is a count.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- if .Values.rbac.act }}
# From here on with rbac.act only: what a ModelService with `mode: Act` has done for it.
# get: the number that is asked for now; patch: another one.
- apiGroups: [apps]
  resources: [deployments/scale, statefulsets/scale]
  verbs: [get, patch]
# get, patch: the same for replicas of several pods.
- apiGroups: [leaderworkerset.x-k8s.io]
  resources: [leaderworkersets/scale]
  verbs: [get, patch]
# patch: which pod goes first, that it gets no new requests, and that node autoscalers leave it alone.
- apiGroups: [""]
  resources: [pods]
  verbs: [patch]
# create: a pod that does not come up makes room for another, if a budget for disruptions allows it.
- apiGroups: [""]
  resources: [pods/eviction]
  verbs: [create]
# create: the workload of a variant with an `engine`; patch: its new form. It goes with its ModelService,
# which owns it.
- apiGroups: [apps]
  resources: [deployments]
  verbs: [create, patch]
# create: the address of such a workload; patch: its new form. It goes the same way.
- apiGroups: [""]
  resources: [services]
  verbs: [create, patch]
# create: how many of its pods may be evicted at once; patch: its new form. It goes the same way.
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [create, patch]
# create: the JobSet of a TrainingRun with a `job`; patch: where it runs. It goes with its TrainingRun.
- apiGroups: [jobset.x-k8s.io]
  resources: [jobsets]
  verbs: [create, patch]
# patch: that Kueue takes the machines of such a JobSet back, and that it may give it others; and which it should take
# first.
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads]
  verbs: [patch]
{{- if dig "kueue" "admission_checks" false .Values.operator.config }}
# patch: whether a Workload that waits for an AdmissionCheck of Flyball may start.
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads/status]
  verbs: [patch]
{{- end }}
{{- end }}
{{- end -}}

{{- /* What it needs of things that are in no namespace. */ -}}
{{- define "flyball.operatorClusterRules" -}}
# list: all at the start; watch: changes of prices and limits.
- apiGroups: [flyball.dev]
  resources: [pools]
  verbs: [list, watch]
# patch: nodes and accelerators that there are of it, how many are used, and what that costs.
- apiGroups: [flyball.dev]
  resources: [pools/status]
  verbs: [patch]
# get: asked for by `flyball check`; list: all at the start; watch: capacity that comes and goes.
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch]
{{- include "flyball.reviewRules" . | nindent 0 }}
{{- if dig "kueue" "admission_checks" false .Values.operator.config }}
# list: all at the start; watch: AdmissionChecks of which Flyball is the controller.
- apiGroups: [kueue.x-k8s.io]
  resources: [admissionchecks]
  verbs: [list, watch]
# patch: that it answers them.
- apiGroups: [kueue.x-k8s.io]
  resources: [admissionchecks/status]
  verbs: [patch]
{{- end }}
{{- end -}}

{{- /* What it takes to know who may ask. */ -}}
{{- define "flyball.tenantRules" -}}
# list: all at the start; watch: keys that are new, and at once those that are revoked.
- apiGroups: [flyball.dev]
  resources: [tenants]
  verbs: [list, watch]
{{- end -}}

{{- /* What it takes to have the API server judge tokens. */ -}}
{{- define "flyball.reviewRules" -}}
# create: ask whose token is shown. It is an answer, not an object; nothing is stored.
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
# create: ask whether they may ask. It is an answer too.
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end -}}

{{- /* What it needs in its own namespace. */ -}}
{{- define "flyball.operatorOwnRules" -}}
# create: the lease, if there is none. It cannot be tied to a name: there is none to check yet.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
# get: who holds it; update: take it over, and hold it on.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "flyball.lease" . | quote }}]
  verbs: [get, update]
# list: whether everything is frozen; watch: at once when it is.
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [flyball-freeze]
  verbs: [list, watch]
# create: the record of budgets, if there is none. It cannot be tied to a name either.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create]
# get: how much the leader before has given out; update: how much this one will.
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [{{ printf "%s-quota" (include "flyball.lease" .) | quote }}]
  verbs: [get, update]
{{- if .Values.rbac.namespaces }}
# list: gateways that there are; watch: one that is silent and one that is gone are not the same.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
{{- end }}
{{- end -}}
