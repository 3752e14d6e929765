/** The installation as GET /sendwright/v1/system describes it. */

import { VERSION } from '../../base/process/version.ts'
import type { Of } from '../../base/shape.ts'
import type { Core } from '../../core.ts'
import type { QueueCounts } from '../../mail/deliver/claim/queue-counts.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import type { JobReport } from '../../platform/jobs/job.ts'
import type { NodeReport } from '../../platform/nodes/node.ts'
import type { AlertHitRow } from '../../platform/store/schema.ts'
import type { ScannerState, Scanners } from '../../sending/content-check/scanners.ts'
import type { STORAGE, SYSTEM } from './shapes.ts'
import type { SizesReport } from './sizes/sizes.ts'
import type { StoredKind } from './sizes/table-kinds.ts'

const STARTED_AT = Date.now()

interface SystemParts {
  jobs(): Promise<JobReport[]>
  alerts(): Promise<AlertHitRow[]>
  sizes(): Promise<SizesReport | null>
  scanners: Pick<Scanners, 'states'>
  /** For one account, or for all. */
  queue(accountId: string | null): Promise<QueueCounts>
}

export async function describeSystem(
  { config, store, firstAccountId, nodes }: Pick<Core, 'config' | 'store' | 'firstAccountId' | 'nodes'>,
  { jobs, alerts, sizes, queue, scanners }: SystemParts,
  caller: Pick<Caller, 'accountId' | 'role'>,
): Promise<Of<typeof SYSTEM>> {
  const isFirst = caller.accountId === firstAccountId
  return {
    version: VERSION,
    mode: config.delivery.kind,
    inbox_release: config.inboxRelease !== null,
    database: store.kind,
    uptime_seconds: Math.floor((Date.now() - STARTED_AT) / 1000),
    queue: await queue(isFirst ? null : caller.accountId),
    ...(isFirst && { alerts: (await alerts()).map(alertView) }),
    // Errors of jobs and nodes may name files and hosts.
    ...(isFirst &&
      caller.role === 'admin' && {
        storage: storageView(config, await sizes()),
        jobs: (await jobs()).map(jobView),
        scanners: scanners.states().map(scannerView),
        nodes: (await nodes.list()).map((node) => nodeView(node, nodes.id)),
      }),
  }
}

const isoTime = (at: number) => new Date(at).toISOString()
const isoTimeOrNull = (at: number | null) => (at === null ? null : isoTime(at))

/** One that lasts now. */
const alertView = ({ name, dimension, dimension_value, latest_value, since_at, advice }: AlertHitRow) => ({
  name,
  ...(dimension !== '' && { dimension, dimension_value }),
  latest_value,
  since: isoTime(since_at),
  advice,
})

function storageView(config: Config, sizes: SizesReport | null): Of<typeof STORAGE> | null {
  if (!sizes) return null
  const { freeBytes, growthPerDay, fullAt } = sizes.disk
  return {
    measured_at: isoTime(sizes.measuredAt),
    disk: {
      free_bytes: freeBytes,
      reserved_bytes: config.freeSpaceMinBytes,
      growth_bytes_per_day: growthPerDay,
      full_at: isoTimeOrNull(fullAt),
    },
    kinds: sizes.kinds.map(({ kind, bytes, rows, growthPerDay: growth }) => ({
      kind,
      bytes,
      rows,
      growth_bytes_per_day: growth,
      kept_days: keptDays(config, kind),
      limit_bytes: limitBytes(config, kind),
    })),
  }
}

/** Null: the domain decides, or people do. */
function keptDays(config: Config, kind: StoredKind): number | null {
  if (kind === 'events') return config.eventRetentionDays
  if (kind === 'audit') return config.auditRetentionDays
  return kind === 'inbox' ? config.inboxRetentionDays : null
}

function limitBytes(config: Config, kind: StoredKind): number | null {
  if (kind === 'events') return config.eventRetentionBytes
  if (kind === 'messages') return config.messageRetentionBytes
  if (kind === 'dialogues') return config.transcriptRetentionBytes
  if (kind === 'audit') return config.auditRetentionBytes
  return kind === 'inbox' ? config.inboxRetentionBytes : null
}

function nodeView(node: NodeReport, ownId: string) {
  return {
    id: node.id,
    answers: node.id === ownId,
    host: node.host,
    roles: node.roles,
    addresses: node.addresses,
    version: node.version,
    state: node.state,
    started_at: isoTime(node.startedAt),
    last_seen_at: isoTime(node.lastSeenAt),
    silent_seconds: Math.round(node.silentMs / 100) / 10,
  }
}

const scannerView = ({
  scanner,
  directions,
  answered,
  failed,
  answeredAt,
  failedAt,
  error,
}: ScannerState) => ({
  ...{ scanner, directions: [...directions], answered, failed },
  last_answered_at: isoTimeOrNull(answeredAt),
  last_failed_at: isoTimeOrNull(failedAt),
  last_error: error,
})

function jobView({ name, everyMs, running, lastStartedAt, lastEndedAt, lastError }: JobReport) {
  return {
    name,
    interval_seconds: everyMs / 1000,
    running,
    last_started_at: isoTimeOrNull(lastStartedAt),
    last_ended_at: isoTimeOrNull(lastEndedAt),
    last_error: lastError,
  }
}
