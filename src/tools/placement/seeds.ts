/**
 * Seeds: mailboxes at receivers that the operator has, and that this service reads by IMAP. They are listed in a JSON file:
 *
 *     [{"address": "seed@gmail.com", "provider": "gmail.com", "name": "Gmail", "region": "us",
 *       "host": "imap.gmail.com", "port": 993, "tls": "implicit", "user": "seed@gmail.com", "password": "..."}]
 *
 * Only address, host, user and password are required. `ca` is a PEM file with the authority of the server's certificate, where
 * the system does not know it. `spam` names the folder of spam where the server does not mark it
 * (RFC 6154 §2); `tls` is `implicit` (default), `starttls`, or `none` for a host on loopback.
 */
import { X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { classifyAddress } from '../../base/net/ip.ts'
import { isPlainObject } from '../../base/values.ts'
import { AddressSyntaxError, addressKey, bareAddress, parseMailbox } from '../../protocols/mime/address.ts'

export interface Seed {
  address: string
  /** What it is compared by. */
  key: string
  /** Domain of the receiver, also of addresses in other domains. */
  provider: string
  name: string
  region: string
  host: string
  port: number
  tls: 'implicit' | 'starttls' | 'none'
  user: string
  password: string
  /** PEM; null: the system's authorities. */
  ca: string | null
  /** Name of the folder of spam; null: the one that the server marks. */
  spam: string | null
}

export interface Seeds {
  all: readonly Seed[]
  /** Last change of the file, Unix milliseconds. */
  changedAt: number
}

/** The file has faults; the text names them. */
class SeedFileError extends Error {
  override name = 'SeedFileError'
}

/** One message is sent to all of a list. */
const SEEDS_MAX = 100
const PORTS = { implicit: 993, starttls: 143, none: 143 } as const

/** @throws SeedFileError */
export function loadSeeds(file: string | null): Seeds {
  if (file === null) return { all: [], changedAt: 0 }
  try {
    return { all: readSeeds(readFileSync(file, 'utf8')), changedAt: Math.floor(statSync(file).mtimeMs) }
  } catch (error) {
    if (error instanceof SeedFileError) throw new SeedFileError(`${file}: ${error.message}`)
    throw new SeedFileError(`Cannot read ${file}`, { cause: error })
  }
}

/** @throws SeedFileError */
function readSeeds(text: string): Seed[] {
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    throw new SeedFileError('not JSON')
  }
  if (!Array.isArray(document) || document.length > SEEDS_MAX)
    throw new SeedFileError(`a list of at most ${SEEDS_MAX} seeds is needed`)
  const seeds = document.map((entry, at) => seedOf(entry, at + 1))
  const keys = new Set(seeds.map(({ key }) => key))
  if (keys.size < seeds.length) throw new SeedFileError('an address is listed twice')
  return seeds
}

function seedOf(entry: unknown, number: number): Seed {
  const fault = (what: string) => new SeedFileError(`seed ${number}: ${what}`)
  if (!isPlainObject(entry)) throw fault('no object')
  const text = (name: string, otherwise?: string): string => {
    const value = entry[name] ?? otherwise
    if (typeof value !== 'string' || value === '' || value.length > 255 || /\p{Cc}/u.test(value))
      throw fault(`"${name}" must be a text of 1 to 255 characters`)
    return value
  }
  const mailbox = addressOf(text('address'))
  if (mailbox === null) throw fault('"address" is not an address')
  const tls = entry['tls'] ?? 'implicit'
  if (tls !== 'implicit' && tls !== 'starttls' && tls !== 'none')
    throw fault('"tls" must be implicit, starttls or none')
  const host = text('host')
  // The password would be readable on its way.
  if (tls === 'none' && classifyAddress(host) !== 'loopback')
    throw fault('"tls": "none" needs a loopback address')
  const port = entry['port'] ?? PORTS[tls]
  if (typeof port !== 'number' || !Number.isInteger(port) || port < 1 || port > 65_535)
    throw fault('"port" must be a number from 1 to 65535')
  const provider = text('provider', mailbox.domain).toLowerCase()
  return {
    ...{ address: bareAddress(mailbox), key: addressKey(mailbox), provider, name: text('name', provider) },
    ...{ region: text('region', 'global'), host, port, tls, user: text('user'), password: text('password') },
    ca: entry['ca'] === undefined ? null : authorityOf(text('ca'), fault),
    spam: entry['spam'] === undefined ? null : text('spam'),
  }
}

function authorityOf(file: string, fault: (what: string) => SeedFileError): string {
  try {
    const text = readFileSync(file, 'utf8')
    new X509Certificate(text)
    return text
  } catch {
    throw fault(`"ca": ${file} is not a readable certificate in PEM`)
  }
}

function addressOf(text: string) {
  try {
    const mailbox = parseMailbox(text)
    return mailbox.name === '' ? mailbox : null
  } catch (error) {
    if (error instanceof AddressSyntaxError) return null
    throw error
  }
}

const partsOf = (list: string) =>
  list
    .toLowerCase()
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean)

/** Seeds that both filters name; an empty filter names all. */
export function chosenSeeds(seeds: Seeds, seedFilter: string, providerFilter: string): Seed[] {
  const [addresses, providers] = [partsOf(seedFilter), partsOf(providerFilter)]
  return seeds.all.filter(
    ({ key, provider }) =>
      (addresses.length === 0 || addresses.includes(key)) &&
      (providers.length === 0 || providers.includes(provider)),
  )
}
