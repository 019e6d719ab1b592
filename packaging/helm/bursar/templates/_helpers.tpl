{{- define "bursar.selector" -}}
app.kubernetes.io/name: bursar
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "bursar.labels" -}}
{{ include "bursar.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "bursar.name" -}}
{{ .Release.Name | trunc 56 | trimSuffix "-" }}{{ if not (contains "bursar" .Release.Name) }}-bursar{{ end }}
{{- end }}
