/**
 * Finds one message in a seed's mailbox by IMAP (RFC 9051), read-only: the folder it is in, Gmail's category, when it
 * arrived, and its header. The client is loaded with the first look; without seeds it never is.
 */
import type { ImapFlow, ListResponse } from 'imapflow'
import { type CopyFacts, factsOf } from './received-copy.ts'
import type { Seed } from './seeds.ts'

export interface FoundCopy {
  messageId: string
  /** `inbox`, `spam`, or the name of another folder. */
  destination: string
  /** `primary`, `promotions`, `updates`, or '' outside the inbox. */
  category: string
  /** Unix milliseconds, by the receiver's clock; null: it does not say. */
  arrivedAt: number | null
  facts: CopyFacts
}

const TIMEOUT_MS = 20_000
/** Folders that are searched: inbox and spam first. */
const FOLDERS_MAX = 30
/** A header is kilobytes. */
const HEADER_BYTES_MAX = 256 * 1024
/** Limits on what a server may make us hold; the client's own are gigabytes. */
const RESPONSE_LIMITS = {
  maxLineLength: HEADER_BYTES_MAX,
  maxLiteralSize: 2 * HEADER_BYTES_MAX,
  maxResponseSize: 4 * HEADER_BYTES_MAX,
  maxResponseTokens: 10_000,
}
/** Bytes of all responses of one look: folders, identifiers and a few headers. The client holds each list as a whole. */
const RECEIVED_BYTES_MAX = 2 * 1024 * 1024
const RECEIVED_CHECK_MS = 20
/** How Gmail sorts the inbox; searched by its own extension, X-GM-RAW. */
const GMAIL_CATEGORIES = ['promotions', 'updates', 'social', 'forums'] as const
const SPAM_NAME = /^(?:.*[./])?(?:junk|spam|bulk|bulk mail|junk e-?mail)$/i
/** A copy there is a second view of one elsewhere. */
const VIEWS = new Set(['\\All', '\\Flagged', '\\Important', '\\Sent', '\\Drafts'])

/** The messages among `messageIds` that the mailbox has. @throws Error when the server cannot be used */
export async function findCopies(
  seed: Seed,
  messageIds: readonly string[],
  signal: AbortSignal,
): Promise<FoundCopy[]> {
  const { ImapFlow } = await import('imapflow')
  const client = new ImapFlow({
    ...{ host: seed.host, port: seed.port, secure: seed.tls === 'implicit' },
    ...(seed.tls === 'none' ? { doSTARTTLS: false } : seed.tls === 'starttls' ? { doSTARTTLS: true } : {}),
    ...(seed.ca !== null && { tls: { ca: seed.ca } }),
    auth: { user: seed.user, pass: seed.password },
    logger: false,
    disableAutoIdle: true,
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    ...RESPONSE_LIMITS,
  })
  // Every failure rejects the call in progress as well.
  client.on('error', () => {})
  const stop = () => client.close()
  signal.addEventListener('abort', stop, { once: true })
  const watch = setInterval(() => {
    if (client.stats().received > RECEIVED_BYTES_MAX) stop()
  }, RECEIVED_CHECK_MS)
  try {
    await client.connect()
    const found: FoundCopy[] = []
    const left = new Set(messageIds)
    for (const folder of foldersOf(await client.list(), seed)) {
      if (left.size === 0) break
      await client.mailboxOpen(folder.path, { readOnly: true })
      for (const messageId of [...left]) {
        const copy = await copyIn(client, folder, messageId)
        if (!copy) continue
        found.push(copy)
        left.delete(messageId)
      }
    }
    await client.logout()
    return found
  } finally {
    clearInterval(watch)
    signal.removeEventListener('abort', stop)
    client.close()
  }
}

const PROBLEM_LENGTH_MAX = 300

/** What a failure of `findCopies` means, as a sentence for the owner of the mailbox. Never with the password. */
export function problemOf(error: unknown, { host, port, user }: Seed): string {
  const { message, code, authenticationFailed, tlsFailed } = factsOfError(error)
  const server = `${host}:${port}`
  const sentence = authenticationFailed
    ? `${server} refuses the user ${user}: check its password, and whether IMAP is on for it.`
    : CERTIFICATE_CODES.test(code)
      ? `The certificate of ${server} cannot be trusted: ${message}.`
      : tlsFailed
        ? `${server} does not offer STARTTLS, and the password is not sent without TLS.`
        : `${server} cannot be read: ${message}.`
  return sentence.replaceAll(/[\r\n]+/g, ' ').slice(0, PROBLEM_LENGTH_MAX)
}

/** Error codes of Node's TLS. */
const CERTIFICATE_CODES =
  /^(?:CERT_|ERR_TLS_CERT|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_(?:GET|VERIFY|DECRYPT|DECODE)|HOSTNAME_MISMATCH|INVALID_CA)/

function factsOfError(error: unknown) {
  const given = error as {
    message?: unknown
    code?: unknown
    authenticationFailed?: unknown
    tlsFailed?: unknown
  } | null
  return {
    message: String(given?.message ?? 'no reason given').replace(/\.$/, ''),
    code: String(given?.code ?? ''),
    authenticationFailed: given?.authenticationFailed === true,
    tlsFailed: given?.tlsFailed === true,
  }
}

interface Folder {
  path: string
  destination: string
}

function foldersOf(list: readonly ListResponse[], seed: Seed): Folder[] {
  const folders = list
    .filter(({ flags, specialUse }) => !flags.has('\\Noselect') && !VIEWS.has(specialUse ?? ''))
    .map(({ path, specialUse }) => ({ path, destination: destinationOf(path, specialUse, seed) }))
  const rank = ({ destination }: Folder) => (destination === 'inbox' ? 0 : destination === 'spam' ? 1 : 2)
  return folders.sort((one, other) => rank(one) - rank(other)).slice(0, FOLDERS_MAX)
}

function destinationOf(path: string, specialUse: string | undefined, { spam }: Seed): string {
  if (path.toUpperCase() === 'INBOX') return 'inbox'
  if (spam !== null) return path === spam ? 'spam' : path
  return specialUse === '\\Junk' || SPAM_NAME.test(path) ? 'spam' : path
}

async function copyIn(client: ImapFlow, folder: Folder, messageId: string): Promise<FoundCopy | null> {
  const numbers = await client.search({ header: { 'message-id': messageId } }, { uid: true })
  const uid = Array.isArray(numbers) ? numbers.at(-1) : undefined
  if (uid === undefined) return null
  const message = await client.fetchOne(String(uid), { internalDate: true, headers: true }, { uid: true })
  if (!message) return null
  const header = message.headers?.subarray(0, HEADER_BYTES_MAX).toString('utf8') ?? ''
  const arrivedAt = message.internalDate ? new Date(message.internalDate).getTime() : null
  return {
    messageId,
    destination: folder.destination,
    category: folder.destination === 'inbox' ? await categoryOf(client, messageId) : '',
    arrivedAt,
    facts: factsOf(header),
  }
}

async function categoryOf(client: ImapFlow, messageId: string): Promise<string> {
  if (!client.capabilities.has('X-GM-EXT-1')) return 'primary'
  const id = messageId.replace(/^<|>$/g, '')
  for (const category of GMAIL_CATEGORIES) {
    const found = await client.search({ gmraw: `category:${category} rfc822msgid:${id}` }, { uid: true })
    if (Array.isArray(found) && found.length > 0) return category
  }
  return 'primary'
}
