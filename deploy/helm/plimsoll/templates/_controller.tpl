{{- /* The comment above each Deployment. */ -}}
{{- define "plimsoll.leading" -}}
One replica leads, the others wait for the Lease; one of them takes over within 15 seconds.
{{- end -}}

{{- /* The image: by digest where one is given, otherwise by tag; without a tag, that of this chart's program. */ -}}
{{- define "plimsoll.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- /* Labels of every object. */ -}}
{{- define "plimsoll.labels" -}}
app.kubernetes.io/name: plimsoll-{{ .component }}
app.kubernetes.io/part-of: plimsoll
{{- end -}}

{{- /* Requests by size of the cluster. Memory of the node autoscaler and of the console grows with nodes and pods
(docs/helm.md names the measurements); that of the other controllers with their own objects. */ -}}
{{- define "plimsoll.resources" -}}
{{- $own := (index .root.Values .component).resources -}}
{{- $isLarge := eq .root.Values.clusterSize "upTo5000Nodes" -}}
{{- if $own -}}
{{ toYaml $own }}
{{- else if eq .component "nodes" -}}
requests: {cpu: {{ ternary "500m" "100m" $isLarge }}, memory: {{ ternary "1Gi" "300Mi" $isLarge }}}
limits: {memory: {{ ternary "4Gi" "2Gi" $isLarge }}}
{{- else if eq .component "fleet" -}}
requests: {cpu: 100m, memory: 256Mi}
limits: {memory: 1Gi}
{{- else -}}
requests: {cpu: 50m, memory: {{ ternary "300Mi" "150Mi" $isLarge }}}
limits: {memory: {{ ternary "1Gi" "512Mi" $isLarge }}}
{{- end -}}
{{- end -}}

{{- /* What every pod of this chart has: no rights on its node, no writable files but /data and /tmp. */ -}}
{{- define "plimsoll.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "plimsoll.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- /* Where pods run. Pods of the node autoscaler come before those that it makes room for. */ -}}
{{- define "plimsoll.priority" -}}
{{- with .root.Values.priorityClassName | default (eq .component "nodes" | ternary "system-cluster-critical" "") }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{- define "plimsoll.placement" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
{{ toYaml . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* Replicas on different nodes and in different zones, as far as there are any. */ -}}
{{- define "plimsoll.spread" -}}
{{- if .root.Values.topologySpread }}
topologySpreadConstraints:
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
- maxSkew: 1
  topologyKey: {{ . }}
  whenUnsatisfiable: ScheduleAnyway
  labelSelector: {matchLabels: {app: plimsoll-{{ $.component }}}}
{{- end }}
{{- end }}
{{- end -}}

{{- /* The Deployment of one controller. Arguments: root, component, port, health and ready (paths), args, env, mounts,
volumes, metadata, ports (further ones). */ -}}
{{- define "plimsoll.controller" -}}
{{- $root := .root -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: plimsoll-{{ .component }}
  {{- with .comment }}
  {{- . | nindent 2 }}
  {{- end }}
  labels:
    {{- include "plimsoll.labels" . | nindent 4 }}
    {{- range $key, $value := .labels }}
    {{ $key }}: {{ $value }}
    {{- end }}
spec:
  replicas: {{ .replicas | default $root.Values.replicas }}
  {{- with .strategy }}
  {{- . | nindent 2 }}
  {{- else }}
  # The new pod is ready before an old one goes; the Lease decides which of them acts.
  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  {{- end }}
  selector: {matchLabels: {app: plimsoll-{{ .component }}}}
  template:
    metadata:
      labels: {app: plimsoll-{{ .component }}}
      {{- with $root.Values.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: plimsoll-{{ .component }}
      {{- if .isWithoutApi }}
      automountServiceAccountToken: false
      {{- end }}
      {{- with include "plimsoll.priority" . | trim }}
      {{- . | nindent 6 }}
      {{- end }}
      {{- with include "plimsoll.placement" $root | trim }}
      {{- . | nindent 6 }}
      {{- end }}
      terminationGracePeriodSeconds: 30
      securityContext:
        {{- include "plimsoll.podSecurity" $root | nindent 8 }}
      {{- with include "plimsoll.spread" . | trim }}
      {{- . | nindent 6 }}
      {{- end }}
      containers:
      - name: {{ .component }}
        image: {{ include "plimsoll.image" $root }}
        imagePullPolicy: {{ $root.Values.image.pullPolicy }}
        args:
        {{- range concat .args (index $root.Values .component).args }}
        - {{ . | quote }}
        {{- end }}
        env:
        - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
        - {name: HOME, value: /data}
        {{- with .env }}
        {{- . | nindent 8 }}
        {{- end }}
        ports:
        - {name: metrics, containerPort: {{ .port }}}
        {{- with .ports }}
        {{- . | nindent 8 }}
        {{- end }}
        livenessProbe:
          httpGet: {path: {{ .health }}, port: {{ .healthPort | default "metrics" }}}
          initialDelaySeconds: 30
          periodSeconds: 10
          timeoutSeconds: 5
        readinessProbe:
          httpGet: {path: {{ .ready | default .health }}, port: {{ .healthPort | default "metrics" }}}
          periodSeconds: 10
          timeoutSeconds: 5
        resources:
          {{- include "plimsoll.resources" . | nindent 10 }}
        securityContext:
          {{- include "plimsoll.containerSecurity" $root | nindent 10 }}
        volumeMounts:
        - {name: data, mountPath: /data}
        - {name: scratch, mountPath: /tmp}
        {{- with .mounts }}
        {{- . | nindent 8 }}
        {{- end }}
      volumes:
      {{- with .data }}
      {{- . | nindent 6 }}
      {{- else }}
      # The journal is deleted with the pod. Mount a volume here to keep it.
      - {name: data, emptyDir: {sizeLimit: 1Gi}}
      {{- end }}
      - {name: scratch, emptyDir: {sizeLimit: 100Mi}}
      {{- with .volumes }}
      {{- . | nindent 6 }}
      {{- end }}
{{- end -}}

{{- define "plimsoll.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: plimsoll-{{ .component }}
  labels:
    {{- include "plimsoll.labels" . | nindent 4 }}
{{- if .isWithoutApi }}
automountServiceAccountToken: false
{{- end }}
{{- end -}}

{{- define "plimsoll.service" -}}
# {{ .comment | default "For Prometheus: /metrics. Probes use the pods directly." }}
apiVersion: v1
kind: Service
metadata:
  name: plimsoll-{{ .component }}
  labels:
    {{- include "plimsoll.labels" . | nindent 4 }}
spec:
  selector: {app: plimsoll-{{ .component }}}
  ports:
  - {name: metrics, port: {{ .port }}, targetPort: metrics}
  {{- with .ports }}
  {{- . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- /* One replica stays during voluntary disruptions, so that a standby can take over at once. */ -}}
{{- define "plimsoll.disruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: plimsoll-{{ .component }}
  labels:
    {{- include "plimsoll.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  selector: {matchLabels: {app: plimsoll-{{ .component }}}}
{{- end -}}

{{- /* Which pods may connect to the pages. A policy without a source lets none in; probes come from the node, and are
not subject to policies. Egress is open: API servers and brokers have no labels to select. */ -}}
{{- define "plimsoll.networkPolicy" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: plimsoll-{{ .component }}
  labels:
    {{- include "plimsoll.labels" . | nindent 4 }}
spec:
  podSelector: {matchLabels: {app: plimsoll-{{ .component }}}}
  policyTypes: [Ingress]
  {{- if or .from .apiFrom }}
  ingress:
  {{- with .from }}
  - from:
    {{- toYaml . | nindent 4 }}
    ports:
    - {protocol: TCP, port: {{ $.port }}}
  {{- end }}
  {{- with .apiFrom }}
  - from:
    {{- toYaml . | nindent 4 }}
    ports:
    - {protocol: TCP, port: {{ $.apiPort }}}
  {{- end }}
  {{- else }}
  ingress: []
  {{- end }}
{{- end -}}
