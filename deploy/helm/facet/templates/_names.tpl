{{- define "facet.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "facet.selector" -}}
app.kubernetes.io/name: facet
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "facet.labels" -}}
{{ include "facet.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end }}

{{- define "facet.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ default $.Chart.AppVersion .tag }}{{ end -}}
{{- end -}}
{{- end }}

{{/* The name under which one pod reaches another, and under which clients reach all. */}}
{{- define "facet.pod" -}}
$(POD_NAME).{{ include "facet.name" . }}-nodes.{{ .Release.Namespace }}.svc
{{- end }}

{{- define "facet.service" -}}
{{ include "facet.name" . }}.{{ .Release.Namespace }}.svc
{{- end }}

{{- define "facet.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* A setting's value as its flag takes it. YAML has on and off as booleans, and Helm large numbers as 2e+06. */}}
{{- define "facet.setting" -}}
{{- if kindIs "slice" . }}{{ join "," . }}
{{- else if kindIs "bool" . }}{{ ternary "on" "off" . }}
{{- else if and (kindIs "float64" .) (eq (floor .) .) }}{{ int64 . }}
{{- else }}{{ . }}
{{- end }}
{{- end }}
