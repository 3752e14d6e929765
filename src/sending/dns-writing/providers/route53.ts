/**
 * Amazon Route 53: record sets in XML, requests signed with Signature Version 4. A batch is one transaction, and a set is
 * removed only as it was read: a change by somebody else makes the batch fail.
 */
import { createHash } from 'node:crypto'
import type { Clock } from '../../../base/time/clock.ts'
import { sign } from '../../../platform/store/blobs/s3-client.ts'
import { normalizeName } from '../../../protocols/dns/names.ts'
import type { DnsProvider, RecordSet, ToWrite } from '../provider.ts'
import { type Api, type ListedRecord, longestZone, RECORDS_PER_NAME_MAX, setsOf } from './api.ts'
import { textsAfter } from './desec.ts'

const VERSION = '/2013-04-01'
const NAMESPACE = 'https://route53.amazonaws.com/doc/2013-04-01/'
/** The one region in which Route 53 is signed for. */
const REGION = 'us-east-1'
const TTL_SECONDS = 3600
/** Zones of one name: private ones may stand beside the public one. */
const ZONES_MAX = 20

export const route53Words = (body: unknown) => (typeof body === 'string' ? textOf(body, 'Message') : '')
/** Route 53 says so with status 400. */
export const isRoute53Busy = (status: number, body: unknown) =>
  status === 400 && typeof body === 'string' && /<Code>(?:Throttling|PriorRequestNotComplete)</.test(body)

export function route53Headers(clock: Clock, host: string, accessKeyId: string, secretAccessKey: string) {
  return ({ method, path, body }: { method: string; path: string; body: Buffer }) => {
    const [bare = '', query = ''] = path.split('?')
    const { host: _, ...headers } = sign(
      { region: REGION, accessKeyId, secretAccessKey, sessionToken: null },
      {
        ...{ method, path: bare, query, host, service: 'route53' },
        bodyHash: createHash('sha256').update(body).digest('hex'),
        at: new Date(clock.now()),
      },
    )
    return headers
  }
}

export function createRoute53(api: Api): DnsProvider {
  return {
    zoneOf: longestZone(async (name) => {
      const query = `dnsname=${name}&maxitems=${ZONES_MAX}`
      const answer = await api<string>('GET', `${VERSION}/hostedzonesbyname?${query}`)
      const found = blocksOf(answer, 'HostedZone').find(
        (block) => nameIn(block) === name && textOf(block, 'PrivateZone') !== 'true',
      )
      return found ? { name, id: textOf(found, 'Id').replace(/^.*\//, ''), ttlMin: null } : null
    }),
    async read(zone, name) {
      const query = `maxitems=${RECORDS_PER_NAME_MAX}&name=${encodeURIComponent(name)}`
      const answer = await api<string>('GET', `${VERSION}/hostedzone/${zone.id}/rrset?${query}`)
      const sets = blocksOf(answer, 'ResourceRecordSet').filter((block) => nameIn(block) === name)
      return setsOf(name, sets.flatMap(recordsOf))
    },
    async write(zone, changes) {
      const batch = changes.flatMap(changeXml).join('')
      await api(
        'POST',
        `${VERSION}/hostedzone/${zone.id}/rrset`,
        `<?xml version="1.0" encoding="UTF-8"?><ChangeResourceRecordSetsRequest xmlns="${NAMESPACE}"><ChangeBatch><Changes>${batch}</Changes></ChangeBatch></ChangeResourceRecordSetsRequest>`,
      )
    },
  }
}

function recordsOf(block: string): ListedRecord[] {
  const type = textOf(block, 'Type')
  const isPlain = !/<(?:AliasTarget|SetIdentifier|TrafficPolicyInstanceId)>/.test(block)
  const lock = isPlain ? null : 'it has a routing policy, or is an alias'
  const ttlSeconds = Number(textOf(block, 'TTL')) || null
  const values = blocksOf(block, 'Value').map(unescapeXml)
  return (values.length > 0 ? values : ['']).map((handle) => {
    const data = type === 'TXT' ? withDecimals(handle) : plainName(handle)
    return { type, data, handle, ttlSeconds, lock }
  })
}

/**
 * Route 53 writes a byte as a backslash and three octal digits, in names any byte except letters, digits, hyphens and
 * underscores; zone files have decimal ones (RFC 1035 §5.1). Other escapes stay, and what is no byte stays unreadable.
 */
const withDecimals = (text: string) =>
  text.replace(ESCAPE, (whole, digits?: string) => {
    if (digits === undefined) return whole
    return OCTAL_BYTE.test(digits) ? `\\${String(Number.parseInt(digits, 8)).padStart(3, '0')}` : '\\999'
  })

const withOctals = (text: string) =>
  text.replace(ESCAPE, (whole, digits?: string) =>
    digits === undefined ? whole : `\\${Number(digits).toString(8).padStart(3, '0')}`,
  )

const ESCAPE = /\\(?:(\d{3})|[\s\S])/g
const OCTAL_BYTE = /^[0-3][0-7]{2}$/

/** A dot within a label, and what is not printable, stay escaped: no name of this service has them. */
const plainName = (text: string) =>
  text.replace(/\\([0-3][0-7]{2})/g, (whole, digits: string) => {
    const character = String.fromCharCode(Number.parseInt(digits, 8))
    return /^[!-~]$/.test(character) && character !== '.' ? character : whole
  })

/** The set as it stands is removed, and made again as it should be. */
function changeXml({ change, current }: ToWrite): string[] {
  const { name, type } = change
  const ttl = change.ttlSeconds ?? TTL_SECONDS
  const added = type === 'TXT' ? { ...change, add: change.add.map(withOctals) } : change
  const after = textsAfter({ change: added, current })
  return [
    ...(current ? [actionXml('DELETE', current, current.ttlSeconds ?? ttl, current.handles)] : []),
    ...(after.length > 0 ? [actionXml('CREATE', { name, type }, ttl, after)] : []),
  ]
}

function actionXml(
  action: 'CREATE' | 'DELETE',
  { name, type }: Pick<RecordSet, 'name' | 'type'>,
  ttl: number,
  values: readonly string[],
): string {
  const records = values.map((value) => `<ResourceRecord><Value>${escapeXml(value)}</Value></ResourceRecord>`)
  return `<Change><Action>${action}</Action><ResourceRecordSet><Name>${escapeXml(name)}.</Name><Type>${type}</Type><TTL>${ttl}</TTL><ResourceRecords>${records.join('')}</ResourceRecords></ResourceRecordSet></Change>`
}

const nameIn = (block: string) => normalizeName(plainName(textOf(block, 'Name')))

/** Contents of the elements of that name without attributes, which do not hold one another. In one pass: the text is a stranger's. */
function blocksOf(xml: string, tag: string): string[] {
  const [open, close] = [`<${tag}>`, `</${tag}>`]
  const blocks: string[] = []
  for (let at = xml.indexOf(open); at >= 0; ) {
    const end = xml.indexOf(close, at)
    if (end < 0) break
    blocks.push(xml.slice(at + open.length, end))
    at = xml.indexOf(open, end)
  }
  return blocks
}

const textOf = (xml: string, tag: string): string => unescapeXml(blocksOf(xml, tag)[0] ?? '').trim()

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }

const unescapeXml = (text: string) =>
  text.replace(/&(?:#(\d{1,6})|#x([\da-f]{1,5})|(\w{2,4}));/gi, (whole, decimal, hex, name: string) =>
    name === undefined
      ? String.fromCodePoint(decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal))
      : (ENTITIES[name] ?? whole),
  )

const escapeXml = (text: string) => text.replace(/[<>&"]/g, (character) => `&#${character.charCodeAt(0)};`)
