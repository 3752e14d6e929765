/** The Helm chart: what was rendered is what it says, its values are checked, and nodes run with what it gives them. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { Ajv } from 'ajv'
import { parse, parseAllDocuments } from 'yaml'
import { createAuthority } from '../support/certificates.ts'
import { CHART, digestLine, renderedFile, SHAPES, type Shape, valuesFile } from '../support/chart.ts'
import { testNodes } from '../support/nodes.ts'
import { createTestDatabase } from '../support/postgres.ts'
import { startS3 } from '../support/s3-server.ts'
import { ownAddress, TEST_KEY } from '../support/service.ts'
import { AUTHORIZATION, startProcess } from '../support/service-process.ts'
import { temporaryFolder } from '../support/stores.ts'

// biome-ignore lint/suspicious/noExplicitAny: manifests are read freely, and asserted on
type Json = any

const read = (path: string) => readFileSync(path, 'utf8')

const manifests = (shape: Shape): Json[] =>
  parseAllDocuments(read(renderedFile(shape))).map((document) => {
    assert.deepEqual(document.errors, [])
    return document.toJS()
  })

const ofKind = (shape: Shape, kind: string): Json =>
  manifests(shape).find((manifest) => manifest.kind === kind)
const podOf = (shape: Shape): Json =>
  (ofKind(shape, 'Deployment') ?? ofKind(shape, 'StatefulSet')).spec.template.spec

test('the chart is of this version', () => {
  const { version } = JSON.parse(read(join(CHART, '../../../package.json')))
  const chart = parse(read(join(CHART, 'Chart.yaml')))
  assert.deepEqual([chart.version, chart.appVersion], [version, version])
})

for (const shape of SHAPES)
  test(`${shape}: the manifests were rendered from the chart as it is`, () => {
    const [first] = read(renderedFile(shape)).split('\n')
    assert.equal(first, digestLine(shape), 'npm run interop -- helm --record')
  })

test('values are those that the schema knows', () => {
  const schema = JSON.parse(read(join(CHART, 'values.schema.json')))
  const isValid = new Ajv({ strict: false }).compile(schema)
  const defaults = parse(read(join(CHART, 'values.yaml')))
  const merged = (one: Json, other: Json): Json =>
    Object.fromEntries(
      [...new Set([...Object.keys(one), ...Object.keys(other)])].map((name) => {
        const [below, above] = [one[name], other[name]]
        const isObject = (value: unknown) =>
          typeof value === 'object' && value !== null && !Array.isArray(value)
        if (isObject(below) && isObject(above)) return [name, merged(below, above)]
        return [name, name in other ? above : below]
      }),
    )
  for (const shape of SHAPES) {
    const values = merged(defaults, parse(read(valuesFile(shape))))
    assert.ok(isValid(values), JSON.stringify(isValid.errors))
  }
  const hostname = 'mail.example.com'
  for (const faulty of [
    {},
    { hostname, mode: 'nodes' },
    { hostname, mode: 'nodes', existingSecret: 'secrets' },
    { hostname, settings: { SENDWRIGHT_SECRET: 'x' } },
    { hostname, settings: { SENDWRIGHT_PORT: '80' } },
    { hostname, delivery: 'smtp://user:password@relay.example' },
    { hostname, extraSecretKeys: ['SENDWRIGHT_OIDC_CLIENT_SECRET'] },
    { hostname, serviceMonitor: { enabled: true } },
    { hostname, terminationGracePeriodSeconds: 10 },
    { hostname, smtp: { proxyProtocol: ['all'] } },
    { hostname, typo: 1 },
  ])
    assert.equal(isValid(merged(defaults, faulty)), false, JSON.stringify(faulty))
})

test('an instance has a volume of its own, nodes have what they share', () => {
  const single = ofKind('single', 'StatefulSet').spec
  assert.equal(single.replicas, 1)
  assert.equal(single.volumeClaimTemplates[0].metadata.name, 'data')
  assert.equal(ofKind('single', 'PodDisruptionBudget'), undefined)
  for (const shape of ['nodes', 'nodes-proxy'] as const) {
    const { replicas, strategy } = ofKind(shape, 'Deployment').spec
    assert.ok(replicas >= 2)
    assert.equal(strategy.rollingUpdate.maxUnavailable, 0)
    assert.equal(ofKind(shape, 'PodDisruptionBudget').spec.maxUnavailable, 1)
  }
  const labels = { 'app.kubernetes.io/component': 'http', ...podLabels('nodes') }
  assert.deepEqual(ofKind('nodes', 'ServiceMonitor').spec.selector.matchLabels, labels)
  assert.deepEqual(ofKind('nodes', 'NetworkPolicy').spec.podSelector.matchLabels, podLabels('nodes'))
  const hosts = ofKind('nodes', 'Ingress').spec.rules.map(({ host }: Json) => host)
  assert.deepEqual(hosts, ['mail.example.com', 'track.example.com'])
})

test('behind a balancer that writes PROXY headers the kubelet, which writes none, asks inside the container', () => {
  const [container] = podOf('nodes-proxy').containers
  assert.deepEqual(container.readinessProbe.exec, { command: ['sendwright', 'health'] })
  assert.deepEqual(container.livenessProbe.tcpSocket, { port: 'http' })
  const services = manifests('nodes-proxy').filter(({ kind }) => kind === 'Service')
  for (const { spec } of services)
    assert.deepEqual([spec.type, spec.externalTrafficPolicy], ['LoadBalancer', 'Cluster'])
  // Without headers the clients' addresses must arrive as they are.
  const [smtp] = manifests('nodes').filter(({ spec }) => spec?.type === 'LoadBalancer')
  assert.equal(smtp.spec.externalTrafficPolicy, 'Local')
})

function podLabels(shape: Shape): Record<string, string> {
  return (ofKind(shape, 'Deployment') ?? ofKind(shape, 'StatefulSet')).spec.template.metadata.labels
}

/** The environment of the container, with the values that its Secret has here. */
function environmentOf(shape: Shape, secrets: Record<string, string>): Record<string, string> {
  const [{ env = [], envFrom }] = podOf(shape).containers
  const map = ofKind(shape, 'ConfigMap')
  assert.deepEqual(envFrom, [{ configMapRef: { name: map.metadata.name } }])
  const own = env.map(({ name, valueFrom }: Json) => {
    assert.ok(secrets[name] !== undefined, `the Secret of the test lacks ${name}`)
    assert.equal(valueFrom.secretKeyRef.key, name)
    return [name, secrets[name]]
  })
  return { ...map.data, ...Object.fromEntries(own) }
}

/** What the certificate's volume would hold. */
async function certificateIn(folder: string): Promise<Record<string, string>> {
  const { cert, key } = createAuthority().issue(['mail.example.com'])
  const files = { SENDWRIGHT_TLS_CERT: join(folder, 'tls.crt'), SENDWRIGHT_TLS_KEY: join(folder, 'tls.key') }
  await writeFile(files.SENDWRIGHT_TLS_CERT, cert)
  await writeFile(files.SENDWRIGHT_TLS_KEY, key)
  return files
}

test('single: an instance starts with its environment', async (t) => {
  const SENDWRIGHT_DATA = await temporaryFolder(t)
  const service = await startProcess(ownAddress(), { ...environmentOf('single', {}), SENDWRIGHT_DATA })
  t.after(() => service.end('SIGKILL'))
  const [{ readinessProbe, livenessProbe, startupProbe }] = podOf('single').containers
  for (const { httpGet } of [readinessProbe, livenessProbe, startupProbe])
    assert.equal((await fetch(`${service.url}${httpGet.path}`)).status, 200)
})

for (const shape of ['nodes', 'nodes-proxy'] as const)
  test(`${shape}: a node starts with its environment, and takes mail`, async (t) => {
    const s3 = await startS3(t)
    const database = await createTestDatabase(shape.replace('-', '_'))
    const nodes = await testNodes(t, {}, database)
    const folder = await temporaryFolder(t)
    const environment = environmentOf(shape, {
      SENDWRIGHT_SECRET: '0123456789abcdef0123456789abcdef01234567',
      SENDWRIGHT_API_KEY: TEST_KEY,
      SENDWRIGHT_DATABASE_URL: database.url,
      ...s3.env,
    })
    assert.equal(environment['SENDWRIGHT_BLOBS'], 's3://mail-blobs/sendwright')
    const here: Record<string, string> = {
      ...(await certificateIn(folder)),
      SENDWRIGHT_BLOBS_ENDPOINT: s3.env['SENDWRIGHT_BLOBS_ENDPOINT'] ?? '',
    }
    if (shape === 'nodes-proxy') {
      assert.equal(environment['SENDWRIGHT_HTTP_PROXY_PROTOCOL'], '10.0.0.0/16')
      assert.equal(environment['SENDWRIGHT_SMTP_PROXY_PROTOCOL'], '10.0.0.0/16')
      // The balancer's network here. Over HTTP the test has none.
      here['SENDWRIGHT_SMTP_PROXY_PROTOCOL'] = '127.0.0.0/8'
    }
    const node = await nodes.start({ ...environment, ...here })
    const [{ ports }] = podOf(shape).containers
    const { hostname } = new URL(node.url)
    for (const { name, containerPort } of ports) {
      const isProxied = name === 'smtp' && shape === 'nodes-proxy'
      const line = isProxied ? `PROXY TCP4 203.0.113.9 ${hostname} 40000 25\r\n` : ''
      const socket = connect(containerPort, hostname)
      socket.on('error', () => {})
      if (name === 'smtp') {
        socket.end(`${line}QUIT\r\n`)
        assert.match(await text(socket), /^220 mail\.example\.com .*\r\n221 /s)
      } else {
        await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
        socket.destroy()
      }
    }
    const form = new FormData()
    for (const [name, value] of [
      ['from', `sender@${node.domain}`],
      ['to', 'a@example.org'],
      ['subject', 'Hello'],
      ['text', 'Hello'],
    ] as const)
      form.append(name, value)
    form.append('attachment', new Blob([new Uint8Array(1_000_000)]), 'data.bin')
    const headers = { authorization: AUTHORIZATION }
    const sent = await fetch(`${node.url}/v3/${node.domain}/messages`, {
      method: 'POST',
      headers,
      body: form,
    })
    assert.equal(sent.status, 200, await sent.text())
  })
