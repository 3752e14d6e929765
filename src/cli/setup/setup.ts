/**
 * `sendwright setup`: from an installed program to one that can send. In steps:
 *
 *  1. answers: flags, else questions on a terminal, with the present settings as defaults;
 *  2. the settings are checked as a whole and written in one step, if any differs;
 *  3. admin and first domain are created where they do not exist, through the running service, or through one that is
 *     started for that (service-access.ts);
 *  4. the DNS records to publish are printed, and the checks of `doctor`;
 *  5. a test message, where the service runs with these settings.
 *
 * Every run may be repeated: what is there already stays as it is.
 */
import { statSync } from 'node:fs'
import { createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { PROGRAM_FOLDER } from '../../base/process/version.ts'
import { type Config, readConfig } from '../../platform/config/config.ts'
import { loadRules } from '../../receiving/bounces/rules.ts'
import { type CheckResult, outgoingPortIn, PROBE_DOMAINS } from '../../tools/system/checks.ts'
import { checkHere, checksOf, checksText, withResolver } from '../doctor.ts'
import { Refused, type ServiceClient } from '../local/client.ts'
import { formOf } from '../operate/service.ts'
import { type GivenAnswers, gatherAnswers, type PortState, readFlags, usage } from './answers.ts'
import { changedNames, changedText, readEnvFile, valuesIn, writeEnvFile } from './env-file.ts'
import { settingsFor } from './plan.ts'
import { domainRecords, knownAddresses, ownRecords, type PrintedRecord, recordsText } from './records.ts'
import { relayFault } from './relay-fault.ts'
import { openAccess, type ServiceAccess } from './service-access.ts'
import { checkDataFolder, checkSettings, ownRights, type Rights } from './trusted-files.ts'

export { usage }

/** What `--json` prints. */
interface Report {
  file: string
  /** Names of the settings that were changed. */
  changed: string[]
  /** A running service has other settings until it is restarted. */
  restart_needed: boolean
  running: boolean
  /** Made by the first start; shown once. */
  api_key: string | null
  admin: Made | null
  domain: Made | null
  records: { service: PrintedRecord[]; domain: PrintedRecord[] }
  checks: CheckResult[]
  /** Message-Id. */
  test_message: string | null
}

interface Made {
  name: string
  created: boolean
}

/** The file of settings where nothing names another. */
const DEFAULT_FILE = 'sendwright.env'
/** Where other servers bring mail, RFC 5321 §4.5.4.2. */
const SMTP_PORT = 25

export async function run(args: string[]): Promise<void> {
  const flags = readFlags(args)
  const file = resolve(flags.file ?? process.env['SENDWRIGHT_ENV_FILE'] ?? DEFAULT_FILE)
  const rights = ownRights(process.env['SENDWRIGHT_DATA'])
  checkSettings(file, rights)
  const before = readEnvFile(file)
  const present = environment(valuesIn(before))
  const given = await gatherAnswers(flags, present, {
    portState,
    outgoingPort: () => outgoingPort(present),
    relayFault(delivery) {
      const { delivery: relay, hostname } = networkSettings(present, { SENDWRIGHT_DELIVERY: delivery })
      return relayFault(relay, hostname)
    },
  })
  try {
    const say = flags.json ? () => {} : given.say
    const { changed, after } = writeSettings({ file, before, given, rights, say })
    const config = readConfig(after, { bounceRules: loadRules })
    becomeServiceUser(file, config.dataFolder)
    const report = await apply({ file, changed, present, after, config, given, say })
    if (flags.json) process.stdout.write(`${JSON.stringify(report)}\n`)
  } finally {
    given.close()
  }
}

/** As the service sees it: what the environment sets comes before the file. */
function environment(values: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  const { SENDWRIGHT_ENV_FILE: _file, SENDWRIGHT_SETUP_PASSWORD: _password, ...env } = process.env
  return { ...values, ...env }
}

/** @throws ConfigError, CommandError before anything is written */
function writeSettings(parts: {
  file: string
  before: string
  given: GivenAnswers
  rights: Rights
  say(text: string): void
}): { changed: string[]; after: NodeJS.ProcessEnv } {
  const { file, before, given, rights, say } = parts
  const changes = settingsFor(given.answers, environment(valuesIn(before)) as Record<string, string>)
  const text = changedText(before, changes)
  const after = environment(valuesIn(text))
  checkDataFolder(readConfig(after, { bounceRules: loadRules }).dataFolder, rights)
  const changed = changedNames(before, changes)
  if (text === before) {
    say(`\nThe settings in ${file} stay as they are.`)
  } else {
    writeEnvFile(file, text)
    say(`\nWritten to ${file}: ${changed.join(', ')}`)
  }
  return { changed, after }
}

/** Root writes the settings; every other file belongs to the user that the service runs as, the group of the settings. */
function becomeServiceUser(file: string, dataFolder: string): void {
  if (process.getuid?.() !== 0) return
  const data = statSync(dataFolder, { throwIfNoEntry: false })
  if (data === undefined || data.uid === 0) return
  const gid = statSync(file, { throwIfNoEntry: false })?.gid ?? data.gid
  process.setgroups?.([...new Set([gid, data.gid])])
  process.setgid?.(data.gid)
  process.setuid?.(data.uid)
}

interface ApplyParts {
  file: string
  changed: string[]
  /** The settings before this run, which a running service has. */
  present: NodeJS.ProcessEnv
  after: NodeJS.ProcessEnv
  config: Config
  given: GivenAnswers
  say(text: string): void
}

async function apply({ file, changed, present, after, config, given, say }: ApplyParts): Promise<Report> {
  const access = await openAccess(present, after)
  let made: Awaited<ReturnType<typeof create>>
  try {
    made = await create(access, config, given, say)
  } finally {
    if (!access.isRunning) await access.stop()
  }
  const service = await recordsOf(config)
  say(
    `\nPublish once for this service (the PTR record is set by the owner of the address):\n\n${recordsText(service)}`,
  )
  if (made.records.length > 0) say(`Publish for ${made.domain?.name}:\n\n${recordsText(made.records)}`)
  const checks = await checksBy(access, config, changed)
  say(`Checks ("sendwright doctor" repeats them):\n\n${checksText(checks)}`)
  const { delivery, smtpPort } = given.answers
  if (delivery !== 'capture' && smtpPort !== SMTP_PORT)
    say(
      `Forward port ${SMTP_PORT} to ${smtpPort}: bounces, complaints and received mail arrive there (docs/going-live.md, section 3).\n`,
    )
  const isCurrent = access.isRunning && changed.length === 0
  const message = await sendTest({ access, isCurrent, domain: made.domain?.name ?? null, given, say })
  if (!isCurrent) say(nextStep(file, access.isRunning))
  return {
    file,
    changed,
    restart_needed: access.isRunning && changed.length > 0,
    running: access.isRunning,
    api_key: access.newApiKey,
    admin: made.admin,
    domain: made.domain,
    records: { service, domain: made.records },
    checks,
    test_message: message,
  }
}

/** The admin, and the domain with its records, unless they exist. */
async function create(
  { client, newApiKey }: ServiceAccess,
  config: Config,
  given: GivenAnswers,
  say: (text: string) => void,
): Promise<{ admin: Made | null; domain: Made | null; records: PrintedRecord[] }> {
  if (newApiKey !== null) say(`\nAPI key (shown once: keep it): ${newApiKey}`)
  const users = await usersOf(client)
  const email = await given.adminEmail(users.length > 0)
  const admin = email === null ? null : await createAdmin(client, users, email, given)
  if (admin !== null) say(`Admin ${admin.name}: ${admin.created ? 'created' : 'exists already'}.`)
  const name = await given.domainName(await firstDomain(client))
  const domain = name === null ? null : await createDomain(client, name)
  if (domain !== null) say(`Domain ${domain.name}: ${domain.created ? 'created' : 'exists already'}.`)
  return { admin, domain, records: domain === null ? [] : await domainRecords(client, config, domain.name) }
}

const USERS_MAX = 1_000

async function usersOf(client: ServiceClient): Promise<string[]> {
  const { users } = (await client.call('GET', `/v5/users?limit=${USERS_MAX}`)) as {
    users: { email: string }[]
  }
  return users.map(({ email }) => email)
}

async function createAdmin(
  client: ServiceClient,
  users: readonly string[],
  email: string,
  given: GivenAnswers,
): Promise<Made> {
  if (users.includes(email.toLowerCase())) return { name: email, created: false }
  const form = formOf({ email, name: email.slice(0, email.indexOf('@')), password: await given.password() })
  await client.call('POST', '/sendwright/v1/admins', form)
  return { name: email, created: true }
}

/** The oldest one that is not the sandbox, as the default; null: there is none. */
async function firstDomain(client: ServiceClient): Promise<string | null> {
  const { items } = (await client.call('GET', '/v4/domains?limit=1000')) as {
    items: { name: string; type: string }[]
  }
  return items.findLast(({ type }) => type !== 'sandbox')?.name ?? null
}

async function createDomain(client: ServiceClient, name: string): Promise<Made> {
  try {
    await client.call('GET', `/v4/domains/${encodeURIComponent(name)}`)
    return { name, created: false }
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 404) throw error
  }
  await client.call('POST', '/v4/domains', formOf({ name }))
  return { name, created: true }
}

const recordsOf = (config: Config): Promise<PrintedRecord[]> =>
  withResolver(config, async (resolver) => ownRecords(config, await knownAddresses(config, resolver)))

/** The settings that matter here, without the others' faults: they may be what this run mends. */
function networkSettings(present: NodeJS.ProcessEnv, more: Record<string, string> = {}): Config {
  const names = ['DNS', 'MX_PORT', 'ALLOW_NETWORKS', 'IPS', 'EGRESS', 'HOSTNAME'].map(
    (name) => `SENDWRIGHT_${name}`,
  )
  const env = Object.fromEntries(names.map((name) => [name, present[name]]))
  return readConfig({ ...env, ...more }, { bounceRules: loadRules })
}

const outgoingPort: (present: NodeJS.ProcessEnv) => ReturnType<typeof outgoingPortIn> = (present) => {
  const config = networkSettings(present)
  return withResolver(config, (resolver) => outgoingPortIn({ config, resolver, probeDomains: PROBE_DOMAINS }))
}

/** A running service knows more, unless it still has the old settings. */
async function checksBy(
  access: ServiceAccess,
  config: Config,
  changed: readonly string[],
): Promise<CheckResult[]> {
  return access.isRunning && changed.length === 0 ? checksOf(access.client) : checkHere(config)
}

async function sendTest(parts: {
  access: ServiceAccess
  isCurrent: boolean
  domain: string | null
  given: GivenAnswers
  say(text: string): void
}): Promise<string | null> {
  const { access, isCurrent, domain, given, say } = parts
  if (!isCurrent) {
    if (given.testTo !== undefined && given.testTo !== '')
      say(
        'The test message was not sent: the service does not run with these settings yet. Run setup again then.',
      )
    return null
  }
  if (domain === null) return null
  const to = await given.testRecipient()
  if (to === null) return null
  const form = formOf({
    from: `Sendwright <postmaster@${domain}>`,
    to,
    subject: 'Sendwright can send',
    text: `This message was sent by "sendwright setup" from ${domain}.\n`,
  })
  try {
    const { id } = await access.client.call('POST', `/v3/${encodeURIComponent(domain)}/messages`, form)
    say(`A test message to ${to} was accepted: ${id}`)
    return String(id)
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    say(`The test message was refused. ${error.message}`)
    return null
  }
}

function nextStep(file: string, isRunning: boolean): string {
  if (file.startsWith('/etc/sendwright/')) return 'Now: systemctl restart sendwright'
  // The launcher reads this one by itself.
  const isFound = file === join(PROGRAM_FOLDER, DEFAULT_FILE)
  const launcher = join(PROGRAM_FOLDER, 'bin/sendwright')
  const start = isFound ? `${launcher} serve` : `SENDWRIGHT_ENV_FILE='${file}' ${launcher} serve`
  const also = isFound ? `, or npm start in ${PROGRAM_FOLDER}` : ''
  return `Now: ${isRunning ? 'stop the service, and start it again by ' : ''}${start}${also}`
}

function portState(port: number): Promise<PortState> {
  return new Promise((done) => {
    const server = createServer()
    server.once('error', ({ code }: NodeJS.ErrnoException) => done(code === 'EACCES' ? 'forbidden' : 'taken'))
    server.listen({ host: '0.0.0.0', port, exclusive: true }, () => server.close(() => done('free')))
  })
}
