{{/* The name in labels. */}}
{{- define "bowsprit.name" -}}
{{ default .Chart.Name .Values.nameOverride }}
{{- end }}

{{/*
The name of the objects in the namespace. As usual, a release that is called like the chart is not named twice.
Those of the whole cluster have the fixed name bowsprit-operator: Helm refuses a second release then.
*/}}
{{- define "bowsprit.fullname" -}}
{{- $name := include "bowsprit.name" . -}}
{{- $default := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default (printf "%s-operator" ($default | trunc 54 | trimSuffix "-")) .Values.fullnameOverride -}}
{{- end }}

{{- define "bowsprit.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "bowsprit.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{ required "serviceAccount.create is false: name an existing account in serviceAccount.name" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "bowsprit.image" -}}
{{- with .Values.image -}}
{{- .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ default $.Chart.AppVersion .tag }}{{ end -}}
{{- end -}}
{{- end }}

{{- define "bowsprit.selectorLabels" -}}
app.kubernetes.io/name: {{ include "bowsprit.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "bowsprit.labels" -}}
{{ include "bowsprit.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}
