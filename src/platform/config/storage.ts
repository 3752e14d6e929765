/** Settings of this process: its roles, its secrets, where its data is and how long it is kept. */
import { resolve } from 'node:path'
import { MEMORY_KINDS, type MemoryKind } from '../../base/process/memory-sizes.ts'
import { ROLES, type Role } from '../nodes/node.ts'
import { serversOf } from '../store/database-url.ts'
import { podName, schemaOf } from '../store/pods/pod.ts'
import {
  byteCount,
  flag,
  list,
  MEGABYTE,
  megabytes,
  oneOf,
  path,
  quoted,
  type Readers,
  secretText,
  serverAddress,
  wholeNumber,
} from './parsers.ts'

export type StorageConfig = ReturnType<typeof readStorage>

export function readStorage(readers: Readers) {
  const { setting, optional, faults } = readers
  /** What this process does for the installation. */
  const isFront = setting(
    'ROLES',
    (text) => text === FRONT,
    () => false,
  )
  const roles = setting<readonly Role[]>(
    'ROLES',
    (text) => (text === FRONT ? [] : rolesIn(text)),
    () => ROLES,
  )
  const databaseUrl = optional('DATABASE_URL', (text) => {
    serversOf(text)
    return text
  })
  const pod = optional('POD', podName)
  const blobs = readBlobs(readers, pod)
  // SQLite has one process.
  if (databaseUrl === null && roles.length < ROLES.length)
    faults.push(
      'SENDWRIGHT_ROLES needs SENDWRIGHT_DATABASE_URL: SQLite has one process, which does everything',
    )
  const podHost = optional('POD_HOST', hostText)
  if (databaseUrl === null && pod !== null)
    faults.push('SENDWRIGHT_POD needs SENDWRIGHT_DATABASE_URL: a pod is a schema of PostgreSQL')
  if (pod === null && podHost !== null) faults.push('SENDWRIGHT_POD_HOST needs SENDWRIGHT_POD')
  if (databaseUrl === null && blobs !== null)
    faults.push('SENDWRIGHT_BLOBS needs SENDWRIGHT_DATABASE_URL: with SQLite, files stay in the data folder')
  return {
    roles,
    /** It is no node, but passes clients on to those of pods (src/front). */
    isFront,
    /** Where a front has its health and figures; null: nowhere but the health on its other listeners. */
    frontStatus: optional('FRONT_STATUS', serverAddress(FRONT_STATUS_PORT)),
    dataFolder: setting('DATA', path, () => resolve('data')),
    /** What the process keeps in memory. The launcher sets it where memory is scarce, together with V8's limits. */
    memory: setting<MemoryKind>('MEMORY', oneOf(MEMORY_KINDS), () => 'normal'),
    databaseUrl,
    /** The schema of the database that this installation has, without its prefix; null: the database is its own. */
    pod,
    /** Where a front reaches this node; null: the listener's address, or the name of the host. */
    podHost,
    /** Where blobs are; null: in the data folder. */
    blobs,
    apiKey: optional('API_KEY', secretText(16)),
    secret: optional('SECRET', secretText(32)),
    /** Days that events are kept, at least 3. */
    eventRetentionDays: setting('EVENT_RETENTION_DAYS', wholeNumber(3, 3650, 'days'), () => 30),
    /** Approximate space for events; null: no limit. Events of the last 3 days are always kept. */
    eventRetentionBytes: optional('EVENT_RETENTION_MEGABYTES', megabytes),
    /** Days that messages are kept after their last recipient is finished, where neither domain nor account says otherwise. */
    messageRetentionDays: setting('MESSAGE_RETENTION_DAYS', wholeNumber(1, 365, 'days'), () => 3),
    /** Approximate space for stored messages; null: no limit. Finished ones are removed before their time, oldest first. */
    messageRetentionBytes: optional('MESSAGE_RETENTION_MEGABYTES', megabytes),
    /** Captured mail: days that it is kept, and the space that it may take. */
    inboxRetentionDays: setting('INBOX_RETENTION_DAYS', wholeNumber(1, 3650, 'days'), () => 30),
    inboxRetentionBytes: setting('INBOX_RETENTION_MEGABYTES', megabytes, () => 1_000_000_000),
    /** Days that dialogues of attempts are kept. */
    transcriptRetentionDays: setting('TRANSCRIPT_RETENTION_DAYS', wholeNumber(1, 365, 'days'), () => 14),
    /** Approximate space for dialogues of attempts, attempts of webhooks, and reports about domains; null: no limit. */
    transcriptRetentionBytes: optional('TRANSCRIPT_RETENTION_MEGABYTES', megabytes),
    webhookRetentionBytes: optional('WEBHOOK_RETENTION_MEGABYTES', megabytes),
    reportRetentionBytes: optional('REPORT_RETENTION_MEGABYTES', megabytes),
    /** Days that rows of the audit log are kept. */
    auditRetentionDays: setting('AUDIT_RETENTION_DAYS', wholeNumber(30, 3650, 'days'), () => 400),
    /** Approximate space for it; null: no limit. Rows of the last 30 days are always kept. */
    auditRetentionBytes: optional('AUDIT_RETENTION_MEGABYTES', megabytes),
    /** Days that the last calls of each API key are kept; 0: none are noted. */
    requestLogDays: setting('REQUEST_LOG_DAYS', wholeNumber(0, 90, 'days'), () => 7),
    /** Keeps a copy of an SQLite database before a newer program changes its schema, where there is room. */
    backupBeforeUpgrade: setting('BACKUP_BEFORE_UPGRADE', flag, () => true),
    /** Below this much free space in the data folder nothing is accepted. */
    freeSpaceMinBytes: setting('FREE_SPACE_MIN', byteCount, () => 100 * MEGABYTE),
  }
}

const HOST = /^[\w.:-]{1,253}$/

function hostText(text: string): string {
  if (!HOST.test(text)) throw new Error(`${quoted(text)} is neither a host name nor an address`)
  return text
}

/** `s3://bucket/prefix`, with the usual variables of S3 clients beside it. A pod's blobs have its name before theirs. */
function readBlobs({ optional, faults, env }: Readers, pod: string | null) {
  const place = optional('BLOBS', s3Place)
  const endpoint = optional('BLOBS_ENDPOINT', serverUrl)
  if (place === null) {
    if (endpoint !== null) faults.push('SENDWRIGHT_BLOBS_ENDPOINT needs SENDWRIGHT_BLOBS')
    return null
  }
  const accessKeyId = env['AWS_ACCESS_KEY_ID']?.trim() ?? ''
  const secretAccessKey = env['AWS_SECRET_ACCESS_KEY']?.trim() ?? ''
  if (accessKeyId === '' || secretAccessKey === '')
    faults.push('SENDWRIGHT_BLOBS needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY')
  const region = env['AWS_REGION']?.trim() || 'us-east-1'
  return {
    bucket: place.bucket,
    prefix: pod === null ? place.prefix : `${place.prefix}${schemaOf(pod)}/`,
    endpoint: endpoint ?? `https://s3.${region}.amazonaws.com`,
    region,
    accessKeyId,
    secretAccessKey,
    sessionToken: env['AWS_SESSION_TOKEN']?.trim() || null,
  }
}

function s3Place(text: string): { bucket: string; prefix: string } {
  const [, bucket, rest = ''] =
    /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([\w./-]{0,200}))?$/.exec(text) ?? []
  if (bucket === undefined) throw new Error(`${quoted(text)} is not s3://bucket or s3://bucket/prefix`)
  const prefix = rest.replace(/^\/+|\/+$/g, '')
  return { bucket, prefix: prefix === '' ? '' : `${prefix}/` }
}

function serverUrl(text: string): string {
  const url = URL.parse(text)
  const isBare = url?.pathname === '/' && !url.search && !url.hash && !url.username
  if (!url || !/^https?:$/.test(url.protocol) || !isBare)
    throw new Error(`${quoted(text)} is not a server such as https://s3.example.com`)
  return url.origin
}

/** The role that stands alone. */
const FRONT = 'front'
const FRONT_STATUS_PORT = 9464

function rolesIn(text: string): readonly Role[] {
  const named = new Set(list(oneOf(ROLES))(text))
  return ROLES.filter((role) => named.has(role))
}
