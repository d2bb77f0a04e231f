#!/bin/sh
# Renders the chart with helm into rendered/, which test/deploy looks at where there is no helm. Run it after every change
# of the chart. Rendered by helm v3.18.6: go install helm.sh/helm/v3/cmd/helm@v3.18.6
set -eu
cd "$(dirname "$0")"
helm lint --strict signalbox
helm lint --strict signalbox --values examples/everything.yaml
helm template signalbox signalbox --namespace models --kube-version 1.33 > rendered/default.yaml
helm template signalbox signalbox --namespace models --kube-version 1.33 --api-versions monitoring.coreos.com/v1 \
  --values examples/everything.yaml > rendered/everything.yaml
# Of the chart without its version, in the order of the file names.
{
  grep -v '^version:\|^appVersion:' signalbox/Chart.yaml
  cat signalbox/values.schema.json signalbox/values.yaml
  for file in $(cd signalbox/templates && ls | LC_ALL=C sort); do cat "signalbox/templates/$file"; done
  cat examples/everything.yaml
} | sha256sum | cut -c 1-64 > rendered/of-chart
