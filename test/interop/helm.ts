/**
 * The chart by the real tools: `helm lint` and `helm template` for each shape, and `kubeconform` where it and its schemas are
 * there. What is rendered must be the recorded manifests, which the tests read without helm; `--record` writes them.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { CHART, digestLine, renderedFile, SHAPES, valuesFile } from '../support/chart.ts'

/** `go install` leaves helm without the version of a cluster. */
const KUBERNETES = '1.30.0'

/** Programs are `helm` and `kubeconform`, or those that INTEROP_HELM and INTEROP_KUBECONFORM name. */
export async function runHelm(record: boolean): Promise<void> {
  const helm = process.env['INTEROP_HELM'] ?? 'helm'
  const kubeconform = process.env['INTEROP_KUBECONFORM'] ?? 'kubeconform'
  for (const shape of SHAPES) {
    run(helm, ['lint', CHART, '--strict', '--kube-version', KUBERNETES, '--values', valuesFile(shape)])
    const options = ['--namespace', 'mail', '--kube-version', KUBERNETES, '--values', valuesFile(shape)]
    const rendered = `${digestLine(shape)}\n${run(helm, ['template', 'sendwright', CHART, ...options])}`
    if (record) await writeFile(renderedFile(shape), rendered)
    else assert.equal(await readFile(renderedFile(shape), 'utf8'), rendered, `${shape}: record again`)
    console.log(`linted and rendered: ${shape}`)
  }
  for (const faulty of FAULTY)
    assert.throws(() => run(helm, ['template', 'sendwright', CHART, '--kube-version', KUBERNETES, ...faulty]))
  if (spawnSync(kubeconform, ['-v']).error !== undefined) return console.log('kubeconform is not installed')
  const schemas = process.env['INTEROP_KUBERNETES_SCHEMAS'] ?? 'default'
  const files = SHAPES.map(renderedFile)
  const options = ['-strict', '-skip', 'ServiceMonitor', '-kubernetes-version', KUBERNETES]
  console.log(run(kubeconform, [...options, '-schema-location', schemas, '-summary', ...files]))
}

/** Values that the schema refuses. */
const FAULTY = [
  [],
  ['--set', 'hostname=mail.example.com,mode=nodes'],
  ['--set', 'hostname=mail.example.com,settings.SENDWRIGHT_SECRET=x'],
  ['--set', 'hostname=mail.example.com,delivery=smtp://user:password@relay.example'],
  ['--set', 'hostname=mail.example.com,typo=1'],
]

function run(program: string, args: readonly string[]): string {
  const { error, status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' })
  if (error) throw error
  if (status !== 0) throw new Error(`${program} ${args[0]} ended with ${status}: ${stdout}${stderr}`)
  return stdout
}
