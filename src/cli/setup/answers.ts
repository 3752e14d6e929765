/** The answers of `sendwright setup`: from flags, from questions, and from the present settings. */

import { isIP } from 'node:net'
import { printableLine } from '../../base/printable.ts'
import { checkChosen } from '../../people/sign-in/chosen-password.ts'
import { readConfig } from '../../platform/config/config.ts'
import { parsePlainMailbox } from '../../protocols/mime/address.ts'
import { hostNameOf } from '../../sending/domains/names/domain-names.ts'
import { CommandError, parseFlags, switches, texts } from '../usage.ts'
import { type Answers, checkHost, HTTPS_WAYS, type HttpsWay, presentHost, presentWay } from './plan.ts'
import { openTerminal, type Terminal } from './terminal.ts'

export const usage = `sendwright setup [--host NAME] [--https acme|files|proxy|off] [--acme-email ADDRESS]
                 [--tls-cert FILE --tls-key FILE] [--trusted-proxies NETWORKS]
                 [--delivery capture|direct|relay] [--smtp-port PORT]
                 [--storage sqlite|postgres] [--data FOLDER]
                 [--domain NAME] [--admin ADDRESS [--password-stdin]] [--test-to ADDRESS]
                 [--file FILE] [--yes] [--json]

Asks on a terminal for what no flag says, with the present settings as defaults, and writes the settings to the file that
SENDWRIGHT_ENV_FILE or --file names, else to sendwright.env. Creates the admin and the domain unless they exist, prints the
DNS records to publish, and runs the checks of doctor. May be repeated. Root's setup refuses a file, or a folder of it, that other
users may write.

--https   acme: a certificate by ACME (Let's Encrypt, accepting its terms); files: your own; proxy: a proxy terminates TLS;
          off: plain HTTP
--yes     asks nothing: present settings and defaults are the answers
Secrets are never arguments: the admin's password comes from a question, from standard input with --password-stdin or from
SENDWRIGHT_SETUP_PASSWORD; the address of PostgreSQL from SENDWRIGHT_DATABASE_URL, that of a relay from SENDWRIGHT_DELIVERY.
`

const OPTIONS = {
  ...texts(
    'host',
    'https',
    'acme-email',
    'tls-cert',
    'tls-key',
    'trusted-proxies',
    'delivery',
    'smtp-port',
    'storage',
    'data',
    'domain',
    'admin',
    'test-to',
    'file',
  ),
  ...switches('password-stdin', 'yes', 'json'),
}

type Flags = ReturnType<typeof readFlags>

/** @throws CommandError for arguments that are wrong by themselves */
export function readFlags(args: string[]) {
  const values = parseFlags('setup', args, OPTIONS)
  oneOf('https', values.https, HTTPS_WAYS)
  oneOf('delivery', values.delivery, ['capture', 'direct', 'relay'])
  oneOf('storage', values.storage, ['sqlite', 'postgres'])
  if (!values.yes && !process.stdin.isTTY)
    throw new CommandError('Standard input is not a terminal: give the answers as flags, with --yes.', 2)
  if (values.json && !values.yes)
    throw new CommandError('--json needs --yes: questions would be in between.', 2)
  return values
}

function oneOf(name: string, value: string | undefined, words: readonly string[]): void {
  if (value !== undefined && !words.includes(value))
    throw new CommandError(`--${name}: "${value}" is not one of ${words.join(', ')}`, 2)
}

export interface GivenAnswers {
  answers: Answers
  /** Null: none is wanted. */
  adminEmail(hasUsers: boolean): Promise<string | null>
  password(): Promise<string>
  domainName(present: string | null): Promise<string | null>
  testRecipient(): Promise<string | null>
  testTo: string | undefined
  say(text: string): void
  close(): void
}

/**
 * Checks what comes after the settings are written, with the rules of the service. Returns the password, null where it will
 * be asked for.
 */
async function checkedAccounts(flags: Flags): Promise<string | null> {
  const { admin, domain, 'test-to': testTo } = flags
  for (const [flag, address] of Object.entries({ '--admin': admin, '--test-to': testTo }))
    if (address && parsePlainMailbox(address) === null)
      throw new CommandError(`${flag}: "${printableLine(address)}" is not a mail address.`, 2)
  if (domain && hostNameOf(domain) === null)
    throw new CommandError(`--domain: "${printableLine(domain)}" is not a domain name.`, 2)
  if (!admin) return null
  const password = await givenPassword(flags)
  if (password === null && flags.yes)
    throw new CommandError('--admin needs a password: --password-stdin, or SENDWRIGHT_SETUP_PASSWORD.', 2)
  if (password !== null) checkFlag('--admin', () => checkChosen(password, admin.toLowerCase()))
  return password
}

type Values = Readonly<Record<string, string | undefined>>

/** `forbidden`: this user may not open it, so neither may a service that this user starts. */
export type PortState = 'free' | 'taken' | 'forbidden'

/** What the questions look at, for advice and defaults. */
export interface Surroundings {
  portState(port: number): Promise<PortState>
  /** Whether other mail servers can be reached, as a sentence. */
  outgoingPort(): Promise<{ sentence: string }>
  /** Logs in to a relay. Null: that worked; else why not. */
  relayFault(delivery: string): Promise<string | null>
}

/** @throws CommandError for what is missing without a terminal */
export async function gatherAnswers(
  flags: Flags,
  present: Values,
  surroundings: Surroundings,
): Promise<GivenAnswers> {
  const password = await checkedAccounts(flags)
  const terminal = flags.yes ? null : openTerminal()
  try {
    const asking = { flags, present, terminal, surroundings, asked: askedBy(terminal) }
    return { answers: await settingsAnswers(asking), ...laterAnswers(asking, password) }
  } catch (error) {
    terminal?.close()
    throw error
  }
}

/** What each question needs. */
interface Asking {
  flags: Flags
  present: Values
  terminal: Terminal | null
  surroundings: Surroundings
  asked: Asked
}

async function settingsAnswers(asking: Asking): Promise<Answers> {
  const { flags, present, terminal, asked } = asking
  const { portState } = asking.surroundings
  terminal?.say('Enter keeps what stands in brackets.\n')
  const host = await asked('Public host name', flags.host, presentHost(present) ?? '', '--host', checkHost)
  checkFlag('--host', () => checkHost(host))
  const ways = HTTPS_WAYS.join(', ')
  const https = (await asked(
    `HTTPS by (${ways})`,
    flags.https,
    presentWay(present) ?? 'acme',
    '--https',
    (word) => mustBeOneOf(word, HTTPS_WAYS),
  )) as HttpsWay
  if (https === 'acme' && presentWay(present) !== 'acme') await warnOfPorts(terminal, portState)
  const acmeEmail =
    https === 'acme'
      ? (await asked(
          'Mail address for notices of the authority (may be empty)',
          flags['acme-email'],
          present['SENDWRIGHT_ACME_EMAIL'] ?? '',
          null,
        )) || null
      : null
  const tls = https === 'files' ? await tlsFiles(asking) : null
  const trustedProxies =
    https === 'proxy'
      ? await asked(
          'Addresses of the proxy',
          flags['trusted-proxies'],
          present['SENDWRIGHT_TRUSTED_PROXIES'] ?? '127.0.0.1/32',
          null,
        )
      : ''
  const delivery = await deliveryAnswer(asking)
  const smtpPort = await smtpPortAnswer(asking, delivery)
  const storage = await storageAnswers(asking)
  return { host: host.toLowerCase(), https, acmeEmail, tls, trustedProxies, delivery, smtpPort, ...storage }
}

type Asked = (
  question: string,
  flag: string | undefined,
  present: string,
  /** The flag to name when there is no answer; null: it may be empty. */
  needed: string | null,
  check?: (answer: string) => void,
) => Promise<string>

/** A flag is the answer; else the terminal gives it; else the present value. */
function askedBy(terminal: Terminal | null): Asked {
  return async (question, flag, present, needed, check) => {
    if (flag !== undefined) return flag
    const must = (answer: string) => {
      if (needed !== null && answer === '') throw new Error('An answer is needed.')
      if (answer !== '') check?.(answer)
    }
    const answer = terminal === null ? present : await terminal.ask(question, present, must)
    if (needed !== null && answer === '') throw new CommandError(`${needed} is missing.`, 2)
    return answer
  }
}

function checkFlag(flag: string, check: () => void): void {
  try {
    check()
  } catch (error) {
    throw new CommandError(`${flag}: ${(error as Error).message}`, 2)
  }
}

function mustBeOneOf(word: string, words: readonly string[]): void {
  if (!words.includes(word)) throw new Error(`One of ${words.join(', ')}, please.`)
}

const PORT_ADVICE: Readonly<Record<Exclude<PortState, 'free'>, string>> = {
  taken: 'another program listens there. Stop it, or choose "proxy".',
  forbidden: 'this user may not open it. Choose "proxy", or install the Debian package.',
}

/** Where they are taken or forbidden the service would not start. */
async function warnOfPorts(terminal: Terminal | null, portState: Surroundings['portState']): Promise<void> {
  for (const port of [80, 443]) {
    const state = await portState(port)
    if (state !== 'free') terminal?.say(`  Port ${port}: ${PORT_ADVICE[state]}`)
  }
}

async function tlsFiles({ flags, present, asked }: Asking): Promise<Answers['tls']> {
  const [cert, key] = [present['SENDWRIGHT_TLS_CERT'] ?? '', present['SENDWRIGHT_TLS_KEY'] ?? '']
  return {
    certificate: await asked('File with the certificate chain (PEM)', flags['tls-cert'], cert, '--tls-cert'),
    key: await asked('File with its key (PEM)', flags['tls-key'], key, '--tls-key'),
  }
}

const KINDS = ['capture', 'direct', 'relay']

/** The setting's value. A relay's address holds a password, so it is not shown as a default. */
async function deliveryAnswer({ flags, present, terminal, surroundings }: Asking): Promise<string> {
  const now = present['SENDWRIGHT_DELIVERY'] || 'capture'
  const kind = /^smtps?:/.test(now) ? 'relay' : now
  const wanted = flags.delivery ?? (terminal === null ? kind : await kindAnswer(terminal, kind, surroundings))
  if (wanted !== 'relay') return wanted
  if (kind === 'relay') return now
  if (terminal === null)
    throw new CommandError('--delivery relay needs SENDWRIGHT_DELIVERY=smtp://user:password@host:port.', 2)
  return relayAnswer(terminal, surroundings)
}

async function kindAnswer(terminal: Terminal, kind: string, { outgoingPort }: Surroundings): Promise<string> {
  if (kind !== 'relay') terminal.say(`  ${(await outgoingPort()).sentence}`)
  terminal.say('  capture: mail stays here, to be looked at; direct: to the servers of the recipients;')
  terminal.say('  relay: through a server that delivers it, as of Amazon SES or your provider.')
  return terminal.ask(`Mail goes (${KINDS.join(', ')})`, kind, (word) => mustBeOneOf(word, KINDS))
}

/** Asks until the login works, or it is to be used all the same. */
async function relayAnswer(terminal: Terminal, { relayFault }: Surroundings): Promise<string> {
  for (;;) {
    const host = await terminal.ask('Host of the relay', '', checkRelayHost)
    const port = await terminal.ask('Port (465: TLS from the first byte)', '587', checkPort)
    const user = await terminal.ask('User (empty: no login)', '')
    const password = user === '' ? '' : await terminal.askHidden('Password (not shown)')
    const login = user === '' ? '' : `${encodeURIComponent(user)}:${encodeURIComponent(password)}@`
    const server = host.includes(':') ? `[${host}]` : host
    const delivery = `${port === '465' ? 'smtps' : 'smtp'}://${login}${server}:${port}`
    const fault = await relayFault(delivery)
    terminal.say(fault === null ? '  The relay answers, and the login works.' : `  ${printableLine(fault)}`)
    if (fault === null) return delivery
    const words = ['yes', 'no']
    const keep = await terminal.ask('Use it all the same (yes, no)', 'no', (word) => mustBeOneOf(word, words))
    if (keep === 'yes') return delivery
  }
}

function checkRelayHost(host: string): void {
  if (isIP(host) === 0 && !/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(host))
    throw new Error('A host name or an address, please.')
}

function checkPort(port: string): void {
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) throw new Error(`"${port}" is not a port`)
}

async function smtpPortAnswer(
  { flags, present, asked, surroundings }: Asking,
  delivery: string,
): Promise<number> {
  const now = present['SENDWRIGHT_SMTP_PORT']
  if (delivery === 'capture' && flags['smtp-port'] === undefined) return Number(now ?? 2525)
  const fallback = now ?? ((await surroundings.portState(25)) === 'free' ? '25' : '2525')
  const port = await asked(
    'Port for SMTP; bounces need 25, or a forward from it',
    flags['smtp-port'],
    fallback,
    '--smtp-port',
  )
  checkFlag('--smtp-port', () => checkPort(port))
  return Number(port)
}

async function storageAnswers({
  flags,
  present,
  terminal,
  asked,
}: Asking): Promise<Pick<Answers, 'databaseUrl' | 'dataFolder'>> {
  const url = present['SENDWRIGHT_DATABASE_URL'] || null
  const kinds = ['sqlite', 'postgres']
  const storage = await asked(
    `Database (${kinds.join(', ')})`,
    flags.storage,
    url === null ? 'sqlite' : 'postgres',
    '--storage',
    (word) => mustBeOneOf(word, kinds),
  )
  const { dataFolder: folder } = readConfig({ SENDWRIGHT_DATA: present['SENDWRIGHT_DATA'] })
  const data = await asked('Folder for the data', flags.data, folder, '--data')
  const dataFolder = data === folder ? null : data
  if (storage === 'sqlite') return { databaseUrl: null, dataFolder }
  const known =
    url ?? (terminal === null ? '' : await terminal.askHidden('Address of PostgreSQL (not shown)'))
  if (known === '')
    throw new CommandError(
      '--storage postgres needs SENDWRIGHT_DATABASE_URL=postgres://user:password@host/database.',
      2,
    )
  return { databaseUrl: known, dataFolder }
}

function laterAnswers(
  { flags, terminal, asked }: Asking,
  password: string | null,
): Omit<GivenAnswers, 'answers'> {
  const optional = async (question: string, flag: string | undefined, present: string) =>
    (await asked(question, flag, present, null)) || null
  let admin: string | null = null
  return {
    async adminEmail(hasUsers) {
      const words = hasUsers
        ? 'Mail address of a further admin (empty: none)'
        : 'Mail address of the admin (empty: none)'
      admin = await optional(words, flags.admin, '')
      return admin
    },
    password: async () => password ?? (await givenPassword(flags)) ?? choosePassword(terminal),
    domainName: (present) => optional('First sending domain (empty: none)', flags.domain, present ?? ''),
    testRecipient: () => optional('Send a test message to (empty: none)', flags['test-to'], ''),
    testTo: flags['test-to'],
    say: (text) => void process.stdout.write(`${text}\n`),
    close: () => terminal?.close(),
  }
}

/** From standard input or the environment; null: from neither. */
async function givenPassword(flags: Flags): Promise<string | null> {
  if (flags['password-stdin']) return firstLine()
  return process.env['SENDWRIGHT_SETUP_PASSWORD'] || null
}

/** Asks for it. Without a terminal there is no admin without a password (`checkedAccounts`). The service checks it. */
async function choosePassword(terminal: Terminal | null): Promise<string> {
  if (terminal === null) throw new CommandError('--admin needs a password.', 2)
  for (;;) {
    const password = await terminal.askHidden('Password, at least 12 characters')
    if ((await terminal.askHidden('Again')) === password) return password
    terminal.say('  They differ.')
  }
}

const PASSWORD_MAX_BYTES = 4_096

async function firstLine(): Promise<string> {
  let text = ''
  for await (const chunk of process.stdin) {
    text += String(chunk)
    if (text.length > PASSWORD_MAX_BYTES || text.includes('\n')) break
  }
  return text.split(/\r?\n/, 1)[0] ?? ''
}
