/**
 * The public Terraform provider makes its calls. It has no setting for the address of the API: it calls api.mailgun.net, whatever
 * it runs against. Here that name leads through a proxy (HTTPS_PROXY) to a listener whose authority it is told to trust
 * (SSL_CERT_FILE), which passes the requests on. So the provider runs as it is published.
 *
 * Takes the arguments of all programs of official/libraries.ts. Needs terraform, and in INTEROP_TERRAFORM_PROVIDER the folder
 * with the provider's program.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { createAuthority } from '../../support/certificates.ts'

const API_HOST = 'api.mailgun.net'
const [url = '', key = '', , created = ''] = process.argv.slice(2)
const folder = await mkdtemp(join(tmpdir(), 'sendwright-terraform-'))
const authority = createAuthority()
const { cert, key: privateKey } = authority.issue([API_HOST])

const api = createSecureServer({ cert, key: privateKey }, (incoming, outgoing) => {
  const { method = '', headers } = incoming
  const passed = request(new URL(incoming.url ?? '', url), { method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(outgoing)
  })
  incoming.pipe(passed)
})
const proxy = createServer()
proxy.on('connect', ({ url: target }, client, head) => {
  assert.equal(target, `${API_HOST}:443`)
  const server = connect((api.address() as AddressInfo).port, '127.0.0.1', () => {
    client.write('HTTP/1.1 200 OK\r\n\r\n')
    server.write(head)
    server.pipe(client).pipe(server)
  })
  for (const socket of [server, client]) socket.on('error', () => socket.destroy())
})
for (const server of [api, proxy]) {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
}

const rc = join(folder, 'terraformrc')
await writeFile(join(folder, 'authority.pem'), authority.cert)
await writeFile(
  rc,
  `provider_installation {
  dev_overrides { "wgebis/mailgun" = "${process.env['INTEROP_TERRAFORM_PROVIDER'] ?? '.'}" }
  direct {}
}
`,
)

/** @returns what it printed. @throws unless it ends with 0 */
async function terraform(...args: string[]): Promise<string> {
  const child = spawn('terraform', args, {
    cwd: folder,
    env: {
      ...{ PATH: process.env['PATH'], HOME: folder, TF_CLI_CONFIG_FILE: rc, CHECKPOINT_DISABLE: '1' },
      HTTPS_PROXY: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
      SSL_CERT_FILE: join(folder, 'authority.pem'),
      MAILGUN_API_KEY: key,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (bytes: Buffer) => {
      output += bytes.toString()
    })
  }
  const [code] = await once(child, 'close')
  assert.equal(code, 0, `terraform ${args[0]} ended with ${code}:\n${output}`)
  return output
}

interface Wanted {
  tracking: boolean
  scheme: 'http' | 'https'
  password: string
  priority: number
  hooks: readonly string[]
}

const main = ({ tracking, scheme, password, priority, hooks }: Wanted) => `
terraform {
  required_providers {
    mailgun = { source = "wgebis/mailgun" }
  }
}
provider "mailgun" {}

resource "mailgun_domain" "one" {
  name           = "${created}"
  spam_action    = "tag"
  dkim_key_size  = 2048
  dkim_selector  = "tf1"
  smtp_password  = "${password}"
  open_tracking  = ${tracking}
  click_tracking = ${tracking}
  web_scheme     = "${scheme}"
}
resource "mailgun_domain_credential" "one" {
  domain   = mailgun_domain.one.name
  login    = "shop"
  password = "${password}"
}
resource "mailgun_route" "one" {
  priority    = ${priority}
  description = "inbox"
  expression  = "match_recipient('.*@${created}')"
  actions     = ["store()", "stop()"]
}
resource "mailgun_webhook" "one" {
  domain = mailgun_domain.one.name
  kind   = "delivered"
  urls   = [${hooks.map((hook) => `"http://hooks.example/${hook}"`).join(', ')}]
}
resource "mailgun_api_key" "one" {
  role        = "sending"
  kind        = "domain"
  domain_name = mailgun_domain.one.name
  description = "shop"
}
data "mailgun_domain" "one" { name = mailgun_domain.one.name }
output "records" { value = [for record in mailgun_domain.one.sending_records_set : record.name] }
`

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
async function call(name: string, work: () => Promise<unknown>): Promise<void> {
  console.log(JSON.stringify({ call: name }))
  await answers.next()
  await work()
}
const write = (wanted: Wanted) => writeFile(join(folder, 'main.tf'), main(wanted))
/** One at a time, in the same order each time. */
const STEADY = ['-input=false', '-no-color', '-parallelism=1']
const apply = () => terraform('apply', '-auto-approve', ...STEADY)
/** Ends with 2 if anything would change. */
const plan = () => terraform('plan', '-detailed-exitcode', ...STEADY)

const first: Wanted = {
  tracking: true,
  scheme: 'http',
  password: 'first password',
  priority: 1,
  hooks: ['a'],
}
try {
  const version = JSON.parse(await terraform('version', '-json')) as { terraform_version: string }
  await call('create', () => write(first).then(apply))
  await call('read', plan)
  await call('change', async () => {
    await write({
      tracking: false,
      scheme: 'https',
      password: 'second password',
      priority: 2,
      hooks: ['a', 'b'],
    })
    await apply()
  })
  await call('read again', plan)
  await call('import', async () => {
    await terraform('state', 'rm', 'mailgun_domain.one')
    await terraform('import', '-input=false', '-no-color', 'mailgun_domain.one', created)
  })
  await call('destroy', () => terraform('destroy', '-auto-approve', ...STEADY))
  const versions = { terraform: version.terraform_version, 'terraform-provider-mailgun': '0.10.0' }
  console.log(JSON.stringify({ versions }))
} finally {
  for (const server of [api, proxy]) {
    server.close()
    server.closeAllConnections()
  }
  await rm(folder, { recursive: true, force: true })
  process.stdin.destroy()
}
