{{- define "sendwright.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "sendwright.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "sendwright.name" .) .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "sendwright.name" .) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "sendwright.selector" -}}
app.kubernetes.io/name: {{ include "sendwright.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "sendwright.labels" -}}
{{ include "sendwright.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* What the ConfigMap holds. Settings of the chart's own values win over `settings`. */}}
{{- define "sendwright.settings" -}}
{{- $own := dict
  "SENDWRIGHT_HOSTNAME" .Values.hostname
  "SENDWRIGHT_PUBLIC_URL" (.Values.publicUrl | default (printf "https://%s" .Values.hostname)) }}
{{- if not (has "SENDWRIGHT_DELIVERY" .Values.extraSecretKeys) }}
{{- $_ := set $own "SENDWRIGHT_DELIVERY" .Values.delivery }}
{{- end }}
{{- if eq .Values.mode "nodes" }}
{{- $_ := set $own "SENDWRIGHT_BLOBS" .Values.blobs.url }}
{{- with .Values.blobs.endpoint }}{{ $_ := set $own "SENDWRIGHT_BLOBS_ENDPOINT" . }}{{ end }}
{{- with .Values.blobs.region }}{{ $_ := set $own "AWS_REGION" . }}{{ end }}
{{- end }}
{{- with .Values.http.trustedProxies }}{{ $_ := set $own "SENDWRIGHT_TRUSTED_PROXIES" (join "," .) }}{{ end }}
{{- with .Values.http.proxyProtocol }}{{ $_ := set $own "SENDWRIGHT_HTTP_PROXY_PROTOCOL" (join "," .) }}{{ end }}
{{- with .Values.smtp.proxyProtocol }}{{ $_ := set $own "SENDWRIGHT_SMTP_PROXY_PROTOCOL" (join "," .) }}{{ end }}
{{- if .Values.smtp.service.ports.submissions }}{{ $_ := set $own "SENDWRIGHT_SMTPS_PORT" "4650" }}{{ end }}
{{- if .Values.http.service.httpsPort }}{{ $_ := set $own "SENDWRIGHT_HTTPS_PORT" "8443" }}{{ end }}
{{- if .Values.tls.existingSecret }}
{{- $_ := set $own "SENDWRIGHT_TLS_CERT" "/tls/tls.crt" }}
{{- $_ := set $own "SENDWRIGHT_TLS_KEY" "/tls/tls.key" }}
{{- end }}
{{- range $name, $value := merge $own .Values.settings }}
{{ $name }}: {{ $value | toString | quote }}
{{- end }}
{{- end }}

{{/* Names of the variables that the Secret has. */}}
{{- define "sendwright.secretKeys" -}}
{{- $keys := list }}
{{- if .Values.existingSecret }}
{{- $keys = list "SENDWRIGHT_SECRET" "SENDWRIGHT_API_KEY" }}
{{- if eq .Values.mode "nodes" }}
{{- $keys = concat $keys (list "SENDWRIGHT_DATABASE_URL" "AWS_ACCESS_KEY_ID" "AWS_SECRET_ACCESS_KEY") }}
{{- end }}
{{- end }}
{{- join " " (concat $keys .Values.extraSecretKeys) }}
{{- end }}

{{- define "sendwright.pod" -}}
metadata:
  labels:
    {{- include "sendwright.selector" . | nindent 4 }}
    {{- with .Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    # A change of settings replaces the pods.
    checksum/settings: {{ include "sendwright.settings" . | sha256sum }}
    {{- with .Values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if eq .Values.mode "nodes" }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "sendwright.selector" . | nindent 10 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: { type: RuntimeDefault }
  containers:
    - name: sendwright
      image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      envFrom:
        - configMapRef: { name: {{ include "sendwright.fullname" . }} }
      {{- with include "sendwright.secretKeys" . }}
      env:
        {{- range splitList " " . }}
        - name: {{ . }}
          valueFrom: { secretKeyRef: { name: {{ $.Values.existingSecret }}, key: {{ . }} } }
        {{- end }}
      {{- end }}
      ports:
        - { name: http, containerPort: 8080 }
        {{- if .Values.http.service.httpsPort }}
        - { name: https, containerPort: 8443 }
        {{- end }}
        - { name: smtp, containerPort: 2525 }
        {{- if .Values.smtp.service.ports.submissions }}
        - { name: submissions, containerPort: 4650 }
        {{- end }}
      {{- /* The kubelet sends no PROXY header: where its network may be that of the balancers, it asks inside the container. */}}
      {{- $asksInside := not (empty .Values.http.proxyProtocol) }}
      # A release may change the schema of a large database at its start.
      startupProbe:
        {{- if $asksInside }}
        tcpSocket: { port: http }
        {{- else }}
        httpGet: { path: /health/live, port: http }
        {{- end }}
        periodSeconds: 5
        failureThreshold: 120
      readinessProbe:
        {{- if $asksInside }}
        exec: { command: [sendwright, health] }
        {{- else }}
        httpGet: { path: /health/ready, port: http }
        {{- end }}
        periodSeconds: {{ $asksInside | ternary 15 5 }}
        timeoutSeconds: {{ $asksInside | ternary 10 5 }}
      livenessProbe:
        {{- if $asksInside }}
        tcpSocket: { port: http }
        {{- else }}
        httpGet: { path: /health/live, port: http }
        {{- end }}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      lifecycle:
        # Balancers learn that the pod ends while it still takes connections.
        preStop:
          exec: { command: [sleep, {{ .Values.preStopSeconds | quote }}] }
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: { drop: [ALL] }
      volumeMounts:
        - { name: data, mountPath: /data }
        - { name: tmp, mountPath: /tmp }
        {{- if .Values.tls.existingSecret }}
        - { name: tls, mountPath: /tls, readOnly: true }
        {{- end }}
        {{- with .Values.extraVolumeMounts }}{{ toYaml . | nindent 8 }}{{ end }}
  volumes:
    {{- if eq .Values.mode "nodes" }}
    - name: data
      emptyDir: { sizeLimit: {{ .Values.scratch.data }} }
    {{- else if .Values.persistence.existingClaim }}
    - name: data
      persistentVolumeClaim: { claimName: {{ .Values.persistence.existingClaim }} }
    {{- end }}
    - name: tmp
      emptyDir: { sizeLimit: {{ .Values.scratch.tmp }} }
    {{- with .Values.tls.existingSecret }}
    - name: tls
      secret: { secretName: {{ . }}, defaultMode: 0440 }
    {{- end }}
    {{- with .Values.extraVolumes }}{{ toYaml . | nindent 4 }}{{ end }}
{{- end }}
