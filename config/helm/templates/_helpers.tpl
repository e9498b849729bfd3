{{- define "poolkeeper.fullname" -}}
{{- $made := ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) -}}
{{- default $made .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "poolkeeper.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "poolkeeper.labels" -}}
{{ include "poolkeeper.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "poolkeeper.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "poolkeeper.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{ required "serviceAccount.name: name the service account, since serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end -}}
{{- end -}}

{{- /* ClusterRoles have no namespace: releases in two of them have two names. */ -}}
{{- define "poolkeeper.clusterRole" -}}
{{ printf "%s-%s" .Release.Namespace (include "poolkeeper.fullname" .) }}
{{- end -}}

{{- define "poolkeeper.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ default $.Chart.AppVersion .tag }}{{ end }}
{{- end -}}
{{- end -}}

{{- /* Not empty if a cluster of the settings has no kubeconfig, and so is this one. */ -}}
{{- define "poolkeeper.inCluster" -}}
{{- range (default dict .Values.settings.clusters) }}{{ if not (default dict .).kubeconfig }}yes{{ end }}{{ end -}}
{{- end -}}

{{- define "poolkeeper.settings" -}}
{{- $settings := deepCopy .Values.settings -}}
{{- if hasKey $settings "pools" }}{{ fail "settings.pools: the chart sets it; files are in the value pools" }}{{ end -}}
{{- if hasKey (default dict $settings.store) "path" }}{{ fail "settings.store.path: the chart sets it; see persistence" }}{{ end -}}
{{- range $key := list "listen" "certificate" "key" "tokens" -}}
{{- if hasKey (default dict $settings.api) $key }}{{ fail (printf "settings.api.%s: the chart sets it; see api.tlsSecret and api.tokensSecret" $key) }}{{ end -}}
{{- end -}}
{{- include "poolkeeper.words" (dict "at" "settings" "value" $settings "switches" (list "shared" "azureIdentity" "private")) -}}
{{- $api := dict "listen" "127.0.0.1:7770" -}}
{{- $asks := or .Values.api.tokensSecret (default dict $settings.oidc).issuer -}}
{{- if and .Values.api.tlsSecret (not $asks) }}{{ fail "api.tlsSecret: name api.tokensSecret or set settings.oidc too: they say who may use the API" }}{{ end -}}
{{- if and $asks (not .Values.api.tlsSecret) }}{{ fail "api.tlsSecret: name one, or neither api.tokensSecret nor settings.oidc: they are for an API that others reach" }}{{ end -}}
{{- if .Values.api.tlsSecret -}}
{{- $api = dict "listen" "0.0.0.0:7770" "certificate" "/etc/poolkeeper/tls/tls.crt" "key" "/etc/poolkeeper/tls/tls.key" -}}
{{- end -}}
{{- if .Values.api.tokensSecret }}{{ $_ := set $api "tokens" "/etc/poolkeeper/tokens/tokens" }}{{ end -}}
{{- $_ := set $settings "api" (merge $api (default dict $settings.api)) -}}
{{ toYaml $settings }}
{{- end -}}

{{- define "poolkeeper.pool" -}}
{{- if kindIs "string" .document -}}
{{ .document }}
{{- else -}}
{{- include "poolkeeper.words" (dict "at" (printf "pools.%s" .name) "value" .document "switches" (list "approval" "countDeleting" "force" "preview")) -}}
{{ toYaml (merge (dict) .document (dict "apiVersion" "poolkeeper/v1" "kind" "Pool" "name" .name)) }}
{{- end -}}
{{- end -}}

{{- /* Helm reads on, off, yes and no without quotes as true and false, which the daemon takes from few keys. */ -}}
{{- define "poolkeeper.words" -}}
{{- $at := .at }}{{ $switches := .switches -}}
{{- if kindIs "map" .value -}}
{{- range $key, $value := .value -}}
{{- if not (and (kindIs "bool" $value) (has $key $switches)) -}}
{{- include "poolkeeper.words" (dict "at" (printf "%s.%s" $at $key) "value" $value "switches" $switches) -}}
{{- end -}}
{{- end -}}
{{- else if kindIs "slice" .value -}}
{{- range $index, $value := .value -}}
{{- include "poolkeeper.words" (dict "at" (printf "%s[%d]" $at $index) "value" $value "switches" $switches) -}}
{{- end -}}
{{- else if kindIs "bool" .value -}}
{{- fail (printf "%s: it is read as %v; write 'on', 'off', 'yes' and 'no' in quotes" $at .value) -}}
{{- end -}}
{{- end -}}
