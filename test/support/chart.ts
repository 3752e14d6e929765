/** The Helm chart: its shapes, and the manifests that were rendered of each. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const CHART = join(import.meta.dirname, '../../deploy/helm/sendwright')
export const SHAPES = ['single', 'nodes', 'nodes-proxy'] as const
export type Shape = (typeof SHAPES)[number]

export const valuesFile = (shape: Shape) => join(CHART, 'ci', `${shape}.yaml`)
export const renderedFile = (shape: Shape) => join(CHART, '../rendered', `${shape}.yaml`)

/** First line of rendered manifests: a digest of all that they were made from. */
export function digestLine(shape: Shape): string {
  const templates = readdirSync(join(CHART, 'templates')).map((name) => join(CHART, 'templates', name))
  const files = [...['Chart.yaml', 'values.yaml'].map((name) => join(CHART, name)), ...templates.toSorted()]
  const hash = createHash('sha256')
  for (const file of [...files, valuesFile(shape)]) hash.update(readFileSync(file)).update('\0')
  return `# Rendered by npm run interop -- helm --record from sha256:${hash.digest('hex')}`
}
