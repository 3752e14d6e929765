/** The files in deploy/container, deploy/kubernetes and deploy/helm fit the program, and two nodes run with what they say. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse, parseAllDocuments } from 'yaml'
import { type Config, readConfig } from '../../src/platform/config/config.ts'
import { SHAPES } from '../support/chart.ts'
import { testNodes } from '../support/nodes.ts'
import { createTestDatabase } from '../support/postgres.ts'
import { startS3 } from '../support/s3-server.ts'
import { eventually, TEST_KEY } from '../support/service.ts'
import { AUTHORIZATION } from '../support/service-process.ts'

type Variables = Record<string, string>

interface ComposeService {
  image: string
  pull_policy?: string
  user?: string
  read_only?: boolean
  cap_drop?: string[]
  cap_add?: string[]
  security_opt?: string[]
  restart?: string
  mem_limit?: string
  stop_grace_period?: string
  ports?: string[]
  volumes?: string[]
  environment?: Variables
  entrypoint?: string[]
  healthcheck?: object
  depends_on?: Record<string, { condition: string }> | string[]
  networks?: Record<string, { ipv4_address: string }> | string[]
}

interface Compose {
  services: Record<string, ComposeService>
  volumes: Record<string, null>
}

interface Manifest {
  kind: string
  metadata: { name: string }
  data: Variables
  spec: Record<string, unknown>
}

/** Without `httpGet` it asks inside the container. */
interface Probe {
  httpGet?: { path: string; port: string }
}

interface PodSpec {
  terminationGracePeriodSeconds: number
  securityContext: { runAsNonRoot: boolean; runAsUser: number }
  volumes: { name: string }[]
  containers: {
    envFrom: { configMapRef: { name: string } }[]
    env?: { name: string; valueFrom: { secretKeyRef: { name: string; key: string } } }[]
    ports: { name: string; containerPort: number }[]
    startupProbe?: Probe
    readinessProbe: Probe
    livenessProbe: Probe
    resources: { limits: { memory: string } }
    securityContext: {
      readOnlyRootFilesystem: boolean
      allowPrivilegeEscalation: boolean
      capabilities: { drop: string[] }
    }
    volumeMounts: { name: string; mountPath: string }[]
  }[]
}

/** The values that compose-nodes.yaml asks for. The S3 server of the tests knows one key. */
const DOT_ENV: Variables = {
  SENDWRIGHT_SECRET: '0123456789abcdef0123456789abcdef01234567',
  SENDWRIGHT_API_KEY: TEST_KEY,
  POSTGRES_PASSWORD: 'p4ssword',
  S3_ACCESS_KEY: 'S3RVER',
  S3_SECRET_KEY: 'S3RVER',
}
/** A container is killed earlier than this only if attempts in progress may be cut off. */
const STOP_SECONDS_MIN = 60

const read = (path: string) => readFileSync(join(import.meta.dirname, '../../deploy', path), 'utf8')

/** `${NAME}`, `${NAME:-default}` and `${NAME:?message}`, as Compose replaces them. */
function interpolate(text: string, values: Variables): string {
  return text.replace(/\$\{(\w+)(?::([-?])([^}]*))?\}/g, (_, name: string, kind, rest) => {
    const value = values[name] || (kind === '-' ? rest : undefined)
    if (value === undefined) throw new Error(`${name} is not set: ${rest}`)
    return value
  })
}

const compose = (name: string, values: Variables) =>
  parse(interpolate(read(`container/${name}`), values), { merge: true }) as Compose

const manifests = (name: string) =>
  parseAllDocuments(read(name)).map((document) => {
    assert.deepEqual(document.errors, [])
    return document.toJS() as Manifest
  })

/** What the image sets for every container. */
const imageVariables = Object.fromEntries(
  [...read('container/Containerfile').matchAll(/\b(SENDWRIGHT_\w+)=(\S+)/g)].map(([, name, value]) => [
    name,
    value,
  ]),
) as Variables

const configOf = (environment: Variables = {}): Config => readConfig({ ...imageVariables, ...environment })

const nodesOf = ({ services }: Compose) =>
  Object.values(services).filter(({ image }) => image.startsWith('sendwright:'))

const COMPOSE_FILES = ['compose.yaml', 'compose-nodes.yaml']
const MANIFEST_FILES = [
  ...['kubernetes/sendwright.yaml', 'kubernetes/sendwright-nodes.yaml'],
  ...SHAPES.map((shape) => `helm/rendered/${shape}.yaml`),
]

for (const name of COMPOSE_FILES) {
  test(`${name}: settings are known, containers have no rights that they do not need`, () => {
    const file = compose(name, DOT_ENV)
    assert.ok(nodesOf(file).length > 0)
    for (const node of nodesOf(file)) {
      const { host, port, smtpPort, dataFolder } = configOf(node.environment)
      assert.deepEqual(
        { host, port, smtpPort, dataFolder },
        { host: '0.0.0.0', port: 8080, smtpPort: 2525, dataFolder: '/data' },
      )
      assert.match(read('container/Containerfile'), /^USER 10001$/m)
      assert.equal(node.user ?? '10001:10001', '10001:10001')
      assert.ok(Number.parseInt(node.stop_grace_period ?? '', 10) >= STOP_SECONDS_MIN)
      assert.equal(node.healthcheck, undefined, 'the check of the image')
    }
    const mounted = Object.values(file.services).flatMap(({ volumes = [] }) => volumes)
    const named = mounted.map((volume) => volume.split(':')[0] ?? '').filter((volume) => /^\w/.test(volume))
    assert.deepEqual(named.toSorted(), Object.keys(file.volumes).toSorted(), 'each volume has one user')
    const published = Object.values(file.services).flatMap(({ ports = [] }) =>
      ports.map((port) => port.split(':').at(-2)),
    )
    assert.equal(new Set(published).size, published.length, 'no port is published twice')
    for (const [service, container] of Object.entries(file.services)) {
      assert.equal(container.read_only, true, service)
      assert.deepEqual(container.cap_drop, ['ALL'], service)
      assert.deepEqual(container.security_opt, ['no-new-privileges:true'], service)
      assert.equal(container.restart, 'unless-stopped', service)
      assert.match(container.image, /^sendwright:latest$|:v?\d+\.\d+[\w.-]*$/, `${service} has a pinned tag`)
    }
  })
}

test('compose-nodes.yaml: both nodes are alike, and find the other containers', () => {
  const file = compose('compose-nodes.yaml', DOT_ENV)
  const [one, two, ...others] = nodesOf(file)
  assert.ok(one && two && others.length === 0)
  assert.deepEqual(
    { ...two, ports: null, volumes: null },
    { ...one, ports: null, volumes: null },
    'only ports and volumes differ',
  )
  const { database, blobs, caddy } = file.services
  assert.ok(database && blobs && caddy)
  const config = configOf(one.environment)
  const address = new URL(config.databaseUrl ?? '')
  assert.deepEqual(
    [address.hostname, address.username, address.password, address.pathname],
    [
      'database',
      database.environment?.['POSTGRES_USER'],
      database.environment?.['POSTGRES_PASSWORD'],
      `/${database.environment?.['POSTGRES_DB']}`,
    ],
  )
  assert.equal(config.blobs?.endpoint, 'http://blobs:7070')
  assert.equal(config.blobs?.accessKeyId, blobs.environment?.['ROOT_ACCESS_KEY'])
  assert.equal(config.blobs?.secretAccessKey, blobs.environment?.['ROOT_SECRET_KEY'])
  const folder = `${blobs.environment?.['VGW_BACKEND_ARG']}/${config.blobs?.bucket}`
  assert.ok(blobs.entrypoint?.at(-1)?.startsWith(`mkdir -p ${folder} &&`), 'the bucket is made')
  assert.ok(database.healthcheck && blobs.healthcheck)
  assert.deepEqual(one.depends_on, {
    database: { condition: 'service_healthy' },
    blobs: { condition: 'service_healthy' },
  })
  assert.match(database.user ?? '', /^[1-9]/)
  assert.deepEqual(caddy.networks, {
    front: { ipv4_address: config.trustedProxies[0]?.replace('/32', '') },
  })
  assert.equal(one.pull_policy, 'never', 'no registry has the image')
  for (const { mem_limit } of Object.values(file.services)) assert.match(mem_limit ?? '', /^\d+[gm]$/)
  for (const name of Object.keys(DOT_ENV)) {
    assert.throws(() => compose('compose-nodes.yaml', { ...DOT_ENV, [name]: '' }), /is not set: see the top/)
    assert.ok(read('container/compose-nodes.yaml').match(`for name in [A-Z0-9_ ]*\\b${name}\\b`), name)
  }
})

for (const name of MANIFEST_FILES) {
  test(`${name}: settings are known, pods have no rights that they do not need`, () => {
    const all = manifests(name)
    const workload = all.find(({ kind }) => kind === 'StatefulSet' || kind === 'Deployment')
    assert.ok(workload)
    const { replicas, template, selector } = workload.spec as {
      replicas: number
      template: { metadata: { labels: Variables }; spec: PodSpec }
      selector: { matchLabels: Variables }
    }
    const pod = template.spec
    const [container, ...others] = pod.containers
    assert.ok(container && others.length === 0)
    const secrets = (container.env ?? []).map(({ name: variable, valueFrom }) => {
      assert.equal(valueFrom.secretKeyRef.key, variable)
      return variable
    })
    const map = all.find(({ kind }) => kind === 'ConfigMap')
    assert.equal(container.envFrom[0]?.configMapRef.name, map?.metadata.name)
    const values: Variables = {
      ...DOT_ENV,
      SENDWRIGHT_DATABASE_URL: 'postgres://sendwright@database/sendwright',
      AWS_ACCESS_KEY_ID: 'key',
      AWS_SECRET_ACCESS_KEY: 'secret',
    }
    const own = Object.fromEntries(secrets.map((variable) => [variable, values[variable] ?? '']))
    const config = configOf({ ...map?.data, ...own })
    // More than one instance needs all that is shared.
    const isShared = config.databaseUrl !== null && config.blobs !== null && config.secret !== null
    assert.equal(replicas > 1, isShared)
    assert.deepEqual(
      container.ports.map(({ containerPort }) => containerPort),
      [config.port, config.httpsPort, config.smtpPort, config.smtpsPort].filter((port) => port !== null),
    )
    assert.equal(pod.securityContext.runAsNonRoot, true)
    assert.equal(pod.securityContext.runAsUser, 10_001)
    assert.equal(container.securityContext.readOnlyRootFilesystem, true)
    assert.equal(container.securityContext.allowPrivilegeEscalation, false)
    assert.deepEqual(container.securityContext.capabilities.drop, ['ALL'])
    assert.match(container.resources.limits.memory, /^\d+Gi$/)
    assert.ok(pod.terminationGracePeriodSeconds >= STOP_SECONDS_MIN)
    assert.ok(container.volumeMounts.some(({ mountPath }) => mountPath === config.dataFolder))
    const budgets = all.filter(({ kind }) => kind === 'PodDisruptionBudget')
    assert.equal(budgets.length, replicas > 1 ? 1 : 0)
    const { labels } = template.metadata
    const selected = all
      .filter(({ kind }) => kind === 'Service')
      .map(({ spec }) => spec['selector'])
      .concat(budgets.map(({ spec }) => (spec['selector'] as typeof selector).matchLabels))
    for (const matched of [selector.matchLabels, ...selected]) assert.deepEqual(matched, labels)
  })
}

/** Paths that containers, balancers and clusters ask for health. */
function healthPaths(): string[] {
  const [, ofCaddy = ''] = /^\s*health_uri (\S+)$/m.exec(read('container/Caddyfile')) ?? []
  const ofPods = MANIFEST_FILES.flatMap((name) =>
    manifests(name).flatMap(({ spec }) => {
      const pod = (spec as { template?: { spec: PodSpec } } | undefined)?.template?.spec
      return (pod?.containers ?? []).flatMap(({ startupProbe, readinessProbe, livenessProbe }) =>
        [startupProbe, readinessProbe, livenessProbe].flatMap((probe) => probe?.httpGet?.path ?? []),
      )
    }),
  )
  return [...new Set([ofCaddy, ...ofPods])]
}

test('the nodes of compose-nodes.yaml start at once on an empty database, and one shows what a lost one accepted', async (t) => {
  const s3 = await startS3(t)
  const file = compose('compose-nodes.yaml', DOT_ENV)
  const balanced = /^\s*reverse_proxy (.+) \{$/m.exec(read('container/Caddyfile'))?.[1]?.split(' ')
  const names = Object.keys(file.services).filter(
    (name) => file.services[name]?.image === 'sendwright:latest',
  )
  assert.deepEqual(
    balanced,
    names.map((name) => `${name}:8080`),
  )
  const nodes = await testNodes(t, {}, await createTestDatabase('compose'))
  const start = (name: string) => {
    // The helper has the address of the database, which is the tests' own.
    const { SENDWRIGHT_DATABASE_URL: _, ...environment } = file.services[name]?.environment ?? {}
    const endpoint = s3.env['SENDWRIGHT_BLOBS_ENDPOINT'] ?? ''
    return nodes.start({ ...environment, SENDWRIGHT_BLOBS_ENDPOINT: endpoint })
  }
  const [one, two] = await Promise.all([start(names[0] ?? ''), start(names[1] ?? '')])
  assert.equal(two.domain, one.domain, 'one of them made the first account')
  for (const { url } of [one, two])
    for (const path of healthPaths()) await eventually(path, async () => (await fetch(`${url}${path}`)).ok)

  const attachment = randomBytes(5_000_000)
  const form = new FormData()
  form.append('from', `sender@${one.domain}`)
  form.append('to', 'a@example.org')
  form.append('subject', 'with a file')
  form.append('text', 'See the file.')
  form.append('attachment', new Blob([new Uint8Array(attachment)]), 'data.bin')
  const headers = { authorization: AUTHORIZATION }
  const sent = await fetch(`${one.url}/v3/${one.domain}/messages`, { method: 'POST', headers, body: form })
  assert.equal(sent.status, 200, await sent.text())
  await one.end('SIGKILL')

  const [row] = await nodes.query('SELECT id FROM messages')
  const path = `/v3/domains/${one.domain}/messages/${row?.['id']}`
  const stored = await fetch(`${two.url}${path}`, { headers })
  assert.equal(stored.status, 200)
  const { subject } = (await stored.json()) as { subject: string }
  assert.equal(subject, 'with a file')
  const download = await fetch(`${two.url}${path}/attachments/0`, { headers })
  assert.ok(Buffer.from(await download.arrayBuffer()).equals(attachment))
})
